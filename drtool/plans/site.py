"""What plans ask of a node again and again: its programs with their ports, its etcd, its API server, its CAs."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.errors import CannotTell, Refused
from drtool.core.plan import Step
from drtool.host.machine import Host
from manifests.kubeconfig import split_url
from manifests.network.addresses import address_of
from manifests.node import PKI, Node
from manifests.pki.expected import AUTHORITIES, LEAVES, Leaf, apiserver_names, etcd_names, is_address
from manifests.pod import Component
from manifests.steps.issuing import IssueCertificate, Signer, Subject
from manifests.steps.running import Program
from snapshots.steps.data import Access

NodeStep = Step[Host]
OWN_PORTS = {
    "kube-apiserver": ("secure-port", "6443"),
    "kube-controller-manager": ("secure-port", "10257"),
    "kube-scheduler": ("secure-port", "10259"),
}
ORDER = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")  # in which they are stopped


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan before it has an id."""

    name: str
    title: str
    steps: tuple[NodeStep, ...]
    by_hand: tuple[str, ...] = ()


def plan_id(name: str, now: datetime) -> str:
    """Sorts by time, and names what is moved aside."""
    return f"{now:%Y%m%dT%H%M%SZ}-{name}-{secrets.token_hex(3)}"


def need_control_plane(node: Node) -> None:
    if not node.layout.control_plane:
        raise CannotTell(
            f"this is no kubeadm control plane: its layout is {node.layout}",
            "run it as root on a control-plane node, or name its tree with --root",
        )


def present(node: Node, name: str) -> Component | None:
    try:
        return node.component(name)
    except (EvidenceMissing, NotApplicable):
        return None


def programs(node: Node) -> tuple[Program, ...]:
    """The static Pods of this node in the order to stop them."""
    found = ((name, present(node, name)) for name in ORDER)
    return tuple(program(component) for _, component in found if component is not None)


def program(component: Component) -> Program:
    if component.program == "etcd":
        urls = (url for flag in ("listen-client-urls", "listen-peer-urls") for url in component.names(flag))
        ports = sorted({port for url in urls if (port := split_url(url)[1])})
        return Program("etcd", tuple(ports), data_dir(component))
    flag, default = OWN_PORTS[component.program]
    return Program(component.program, (int(component.value(flag, default)),))


def data_dir(etcd: Component) -> str:
    """On the host. Refuses a separate WAL directory, which no plan moves."""
    if etcd.value("wal-dir"):
        raise Refused(
            f"{etcd.path} sets --wal-dir={etcd.value('wal-dir')}", "move the WAL into the data directory first"
        )
    inside = etcd.value("data-dir", "default.etcd")
    return etcd.container.host_path(inside) or inside


def etcd_access(node: Node, *endpoints: str) -> Access:
    """etcd on this node by loopback where it listens there, with a client certificate that the node has."""
    etcd, apiserver = present(node, "etcd"), present(node, "kube-apiserver")
    pairs = [(f"{PKI}/etcd/healthcheck-client.crt", f"{PKI}/etcd/healthcheck-client.key")]
    ca = f"{PKI}/etcd/ca.crt"
    if apiserver is not None and apiserver.has("etcd-certfile"):
        pairs.append((_file(apiserver, "etcd-certfile"), _file(apiserver, "etcd-keyfile")))
        ca = _file(apiserver, "etcd-cafile")
    if etcd is not None and etcd.has("trusted-ca-file"):
        pairs.append((_file(etcd, "cert-file"), _file(etcd, "key-file")))
        ca = _file(etcd, "trusted-ca-file")
    cert, key = next((pair for pair in pairs if _valid(node, pair[0])), pairs[0])
    return Access(endpoints or local_endpoints(node), ca, cert, key)


def _valid(node: Node, path: str) -> bool:
    """A health check's certificate often runs out unnoticed; kubeadm gives etcd's own both usages."""
    try:
        certificate = node.certificate(path)
    except EvidenceMissing:
        return False
    return certificate.not_before <= node.at <= certificate.not_after


def local_endpoints(node: Node) -> tuple[str, ...]:
    etcd = present(node, "etcd")
    if etcd is None:
        return node.component("kube-apiserver").names("etcd-servers")
    urls = etcd.names("listen-client-urls")
    loopback = [url for url in urls if _is_loopback(split_url(url)[0])]
    anywhere = [re.sub(r"//(0\.0\.0\.0|\[::\])", "//127.0.0.1", url) for url in urls]
    return tuple(loopback or anywhere)[:1]


def _is_loopback(host: str) -> bool:
    address = address_of(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _file(component: Component, flag: str) -> str:
    value = component.flag(flag).value
    return component.container.host_path(value) or value


def advertised(node: Node) -> str:
    return node.apiserver.flag("advertise-address").value


def own_server(node: Node, address: str = "") -> str:
    """HOST:PORT of this node's API server."""
    address = address or advertised(node)
    bracketed = f"[{address}]" if ":" in address else address
    return f"{bracketed}:{node.apiserver.value('secure-port', '6443')}"


def endpoint(node: Node) -> str:
    """controlPlaneEndpoint as HOST:PORT: kubeadm's configuration, else where admin.conf points."""
    try:
        told = node.cluster_configuration.get("controlPlaneEndpoint", default="")
    except EvidenceMissing:
        told = ""
    if told:
        return str(told) if split_url(f"//{told}")[1] else f"{told}:6443"
    try:
        return node.kubeconfig("admin.conf").server.removeprefix("https://")
    except EvidenceMissing:
        return ""


def reissue(node: Node, leaf: Leaf, address: str, drop: str = "", more: tuple[str, ...] = ()) -> IssueCertificate:
    """The step that issues one of kubeadm's leafs anew. Raises Refused without the CA's key."""
    path, key = leaf_files(node, leaf)
    return IssueCertificate(path, key, signer(node, leaf.authority), subject(node, leaf, address, drop, more))


def subject(node: Node, leaf: Leaf, address: str, drop: str = "", more: tuple[str, ...] = ()) -> Subject:
    """Whom a leaf is for, with the names that it must carry.

    Names that the present certificate has beyond those stay, but for `drop`, and unless it is another node's.
    """
    path, _ = leaf_files(node, leaf)
    names: tuple[str, ...] = ()
    if leaf.names:
        wanted = wanted_names(node, leaf, address, more)
        present_names = _present_names(node, path)
        kept = [name for name in present_names if name != drop] if _own(node, present_names) else []
        names = tuple(dict.fromkeys((*wanted, *kept)))
        names = (*(n for n in names if not is_address(n)), *(n for n in names if is_address(n)))
    return Subject(leaf.common_name or node.name, leaf.usages, _organizations(node, path, leaf), names)


def _own(node: Node, names: tuple[str, ...]) -> bool:
    """A certificate copied from another control plane carries that one's name, which must not be passed on."""
    return not names or node.name in names


def wanted_names(node: Node, leaf: Leaf, address: str, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    if leaf.names == "etcd":
        return etcd_names(node.name, address, more)
    host = split_url(f"//{endpoint(node)}")[0]
    replaced_host = address if host == advertised(node) else host
    service = node.apiserver.value("service-cluster-ip-range", "10.96.0.0/12")
    return apiserver_names(node.name, address, service, _domain(node), replaced_host, (*_configured_names(node), *more))


def _configured_names(node: Node) -> tuple[str, ...]:
    try:
        found = node.cluster_configuration.get("apiServer", "certSANs", default=[])
    except EvidenceMissing:
        return ()
    own = advertised(node)
    return tuple(str(name) for name in found if str(name) != own) if isinstance(found, list) else ()


def _domain(node: Node) -> str:
    try:
        return str(node.cluster_configuration.get("networking", "dnsDomain", default="cluster.local"))
    except EvidenceMissing:
        return "cluster.local"


def _present_names(node: Node, path: str) -> tuple[str, ...]:
    try:
        return node.certificate(path).names()
    except EvidenceMissing:
        return ()


def _organizations(node: Node, path: str, leaf: Leaf) -> tuple[str, ...]:
    """What the present certificate says: kubeadm before 1.29 gave system:masters where it now gives a group."""
    try:
        return node.certificate(path).organizations
    except EvidenceMissing:
        return leaf.organizations


FLAGS = {
    "apiserver": ("kube-apiserver", "tls-cert-file", "tls-private-key-file"),
    "apiserver-kubelet-client": ("kube-apiserver", "kubelet-client-certificate", "kubelet-client-key"),
    "front-proxy-client": ("kube-apiserver", "proxy-client-cert-file", "proxy-client-key-file"),
    "apiserver-etcd-client": ("kube-apiserver", "etcd-certfile", "etcd-keyfile"),
    "etcd/server": ("etcd", "cert-file", "key-file"),
    "etcd/peer": ("etcd", "peer-cert-file", "peer-key-file"),
}


def leaf_files(node: Node, leaf: Leaf) -> tuple[str, str]:
    """Certificate and key as the flags name them, else where kubeadm puts them."""
    usual = f"{PKI}/{leaf.path}.crt", f"{PKI}/{leaf.path}.key"
    if leaf.path not in FLAGS:
        return usual
    name, certificate, key = FLAGS[leaf.path]
    component = present(node, name)
    if component is None or not (component.has(certificate) and component.has(key)):
        return usual
    return _file(component, certificate), _file(component, key)


def signer(node: Node, authority: str) -> Signer:
    """Raises Refused where the CA's key is not on this node."""
    found = Signer(f"{PKI}/{authority}.crt", f"{PKI}/{authority}.key")
    known = {one.path for one in AUTHORITIES}
    if authority not in known or node.entry(found.key).data is None:
        raise Refused(
            f"{found.key} is not on this node: certificates cannot be issued here",
            "`drtool fix` writes signing requests for the CA's holder; or bring the key from another control plane",
        )
    return found


def leaf(path: str) -> Leaf:
    return next(one for one in LEAVES if one.path == path)


def file_data(node: Node, path: str) -> bytes:
    data: Any = node.entry(path).data
    return bytes(data or b"")
