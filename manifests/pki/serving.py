"""Which names the certificates of servers must carry, and whose names they carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Layer
from manifests.identity import endpoint, members
from manifests.kubeconfig import split_url
from manifests.network.addresses import address_of
from manifests.node import Node
from manifests.pki.certificates import Certificate
from manifests.pki.credentials import Credential, credentials

API_SERVER, ETCD_SERVER, ETCD_PEER = "API server", "etcd server", "etcd peer"
EVERYBODYS = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class Dialled:
    """A host part that clients dial this node's own server by, with the line that says so."""

    host: str
    by: str
    certificate: Certificate
    layer: Layer
    evidence: Evidence


def serving(node: Node, role: str) -> Certificate:
    """The certificate of one server; EvidenceMissing where the tree does not hold it."""
    for credential in credentials(node):
        if credential.role == role and credential.certificate is not None:
            return credential.certificate
    raise EvidenceMissing(f"the certificate of the {role} is not in this tree")


def dialled(node: Node) -> Iterator[Dialled]:
    """What the flags say that this node's own servers are reached by."""
    apiserver, etcd = node.components.get("kube-apiserver"), node.components.get("etcd")
    certificates = {c.role: c.certificate for c in credentials(node) if c.serving and c.certificate is not None}
    if apiserver and API_SERVER in certificates:
        for flag in apiserver.all("advertise-address"):
            yield Dialled(flag.value, f"--{flag.name}", certificates[API_SERVER], Layer.APISERVER, flag.evidence)
    for name, role in (("advertise-client-urls", ETCD_SERVER), ("initial-advertise-peer-urls", ETCD_PEER)):
        for flag in etcd.all(name) if etcd and role in certificates else ():
            for host in _hosts(flag.value):
                yield Dialled(host, f"--{name}", certificates[role], Layer.ETCD, flag.evidence)
    if apiserver and etcd and ETCD_SERVER in certificates:
        for flag in apiserver.all("etcd-servers"):
            for host in _hosts(flag.value):
                address = address_of(host)
                if host == "localhost" or (address is not None and address.is_loopback):
                    yield Dialled(host, "--etcd-servers", certificates[ETCD_SERVER], Layer.ETCD, flag.evidence)


def _hosts(urls: str) -> list[str]:
    found = (split_url(url.strip())[0] for url in urls.split(",") if url.strip().startswith("https"))
    return [host for host in found if host]


def own_names(node: Node) -> frozenset[str]:
    """What this node is called: by its kubelet, its host, its etcd; short forms included."""
    etcd = node.components.get("etcd")
    names = {node.name, node.hostname, etcd.value("name") if etcd else ""}
    lower = {name.lower() for name in names if name}
    return frozenset(lower | {name.partition(".")[0] for name in lower})


def strangers(node: Node, credential: Credential) -> tuple[str, ...]:
    """Names of another node in a serving certificate that carries neither a name nor an address of this one.

    None where it carries one: a host that was renamed keeps its address, one that moved keeps its name.
    """
    certificate = credential.certificate
    own = own_names(node)
    if certificate is None or not own:
        return ()
    named = {name.lower() for name in (*certificate.dns_names, *_etcd_name(credential, certificate))}
    if any(name in own or name.partition(".")[0] in own or _covered(certificate, own) for name in named):
        return ()
    flags = [d.host for d in dialled(node) if d.certificate is certificate and not _loopback(d.host)]
    if any(certificate.covers(host) for host in flags) or _holds_own_address(node, certificate):
        return ()
    others = members(node)
    foreign = sorted(name for name in named if not _shared(node, name))
    foreign += [str(a) for a in certificate.addresses if any(a in addresses for addresses in others.values())]
    return tuple(sorted(foreign, key=lambda name: name not in others))


def _etcd_name(credential: Credential, certificate: Certificate) -> tuple[str, ...]:
    return (certificate.common_name,) if credential.role in {ETCD_SERVER, ETCD_PEER} and certificate.common_name else ()


def _covered(certificate: Certificate, names: frozenset[str]) -> bool:
    return any("." in name and certificate.covers(name) for name in names)


def _holds_own_address(node: Node, certificate: Certificate) -> bool:
    """An address of the host, other than one that the whole cluster shares."""
    host = split_url(endpoint(node))[0]
    shared = {address_of(host), *node.resolve(host)} if host else set()
    try:
        return any(address in certificate.addresses and address not in shared for address in node.addresses.own)
    except EvidenceMissing:
        return False


def _shared(node: Node, name: str) -> bool:
    """Names that every control plane's certificate carries: the Service's, the endpoint's, the cluster's extra ones."""
    if name in EVERYBODYS or name.startswith(("kubernetes.default.svc.", "*.")):
        return True
    return name == split_url(endpoint(node))[0].lower() or name in _extra_names(node)


def _extra_names(node: Node) -> frozenset[str]:
    try:
        extra = node.cluster_configuration.get("apiServer", "certSANs", default=[])
    except EvidenceMissing:
        return frozenset()
    return frozenset(str(name).lower() for name in extra) if isinstance(extra, list) else frozenset()


def _loopback(host: str) -> bool:
    address = address_of(host)
    return host == "localhost" or (address is not None and address.is_loopback)
