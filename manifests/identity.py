"""Which cluster and member a node's files say it is, and every place that names its own address, with that address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from manifests.kubeconfig import split_url
from manifests.network.addresses import Address, address_of
from manifests.node import Node

ETCD_LISTEN = ("listen-client-urls", "listen-peer-urls", "listen-metrics-urls")
ETCD_ADVERTISE = ("advertise-client-urls", "initial-advertise-peer-urls")
LOCAL_KUBECONFIGS = ("controller-manager.conf", "scheduler.conf")


@dataclass(frozen=True, slots=True)
class Place:
    """`kind` groups places that are edited together: etcd, apiserver, probe, kubeconfig."""

    kind: str
    what: str
    address: Address
    evidence: Evidence


def cluster_name(node: Node) -> str:
    """What a person types to agree: the cluster's name in admin.conf or kubelet.conf."""
    for path in ("/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.conf"):
        try:
            return str(node.document(path).get("clusters", 0, "name") or "kubernetes")
        except EvidenceMissing:
            continue
    return "kubernetes"


def own_places(node: Node) -> tuple[Place, ...]:
    """Loopback and unspecified addresses are left out: they are right on every node."""
    found = (*_etcd(node), *_apiserver(node), *_kubeconfigs(node))
    return tuple(p for p in found if not p.address.is_loopback and not p.address.is_unspecified)


def _etcd(node: Node) -> Iterator[Place]:
    etcd = node.components.get("etcd")
    for name in (*ETCD_LISTEN, *ETCD_ADVERTISE) if etcd else ():
        for flag in etcd.all(name) if etcd else ():
            for address in url_addresses(flag.value):
                yield Place("etcd", f"--{name}", address, flag.evidence)


def _apiserver(node: Node) -> Iterator[Place]:
    apiserver = node.components.get("kube-apiserver")
    if apiserver is None:
        return
    for name in ("advertise-address", "bind-address"):
        for flag in apiserver.all(name):
            address = address_of(flag.value)
            if address is not None:
                yield Place("apiserver", f"--{name}", address, flag.evidence)
    for probe in apiserver.container.probes:
        address = address_of(probe.host) if probe.host else None
        if address is not None:
            yield Place("probe", probe.kind, address, probe.evidence)


def _kubeconfigs(node: Node) -> Iterator[Place]:
    """Only those that point to this node's own API server by design; the others may name a VIP or another node."""
    for name in LOCAL_KUBECONFIGS:
        config = node.kubeconfigs.get(f"/etc/kubernetes/{name}")
        address = address_of(config.host) if config else None
        if config is not None and address is not None and address not in endpoint_addresses(node):
            yield Place("kubeconfig", name, address, config.server_evidence)


def url_addresses(urls: str) -> tuple[Address, ...]:
    """The addresses in a comma-separated list of URLs; names are left out."""
    hosts = (split_url(url.strip())[0] for url in urls.split(",") if url.strip())
    return tuple(address for host in hosts if (address := address_of(host)) is not None)


def endpoint(node: Node) -> str:
    """controlPlaneEndpoint as kubeadm knows it, "" where it is not set or not known."""
    try:
        return str(node.cluster_configuration.get("controlPlaneEndpoint", default="") or "")
    except EvidenceMissing:
        return ""


def endpoint_addresses(node: Node) -> frozenset[Address]:
    """What the endpoint's host is or resolves to by /etc/hosts, where that is not an own address of this node."""
    host = split_url(endpoint(node))[0]
    return frozenset(a for a in node.resolve(host) if a not in _own_if_known(node)) if host else frozenset()


def _own_if_known(node: Node) -> tuple[Address, ...]:
    try:
        own = node.addresses.own
    except EvidenceMissing:
        own = ()
    apiserver = node.components.get("kube-apiserver")
    advertised = address_of(apiserver.value("advertise-address")) if apiserver else None
    return (*own, advertised) if advertised is not None else own


def members(node: Node) -> dict[str, tuple[Address, ...]]:
    """etcd's members as --initial-cluster names them: name to the addresses of its peer URLs."""
    etcd = node.components.get("etcd")
    found: dict[str, tuple[Address, ...]] = {}
    for part in etcd.value("initial-cluster").split(",") if etcd else ():
        name, _, url = part.partition("=")
        if name.strip():
            found[name.strip()] = (*found.get(name.strip(), ()), *url_addresses(url))
    return found


def of_other_members(node: Node) -> frozenset[Address]:
    etcd = node.components.get("etcd")
    own = etcd.value("name") if etcd else ""
    return frozenset(a for name, addresses in members(node).items() if name != own for a in addresses)


def certified(node: Node) -> frozenset[Address]:
    """Addresses that this node's own serving certificates carry: what it was called when they were made."""
    paths = ("apiserver.crt", "etcd/server.crt", "etcd/peer.crt")
    pems = (node.pems.get(f"/etc/kubernetes/pki/{path}") for path in paths)
    return frozenset(a for pem in pems if pem for certificate in pem.certificates for a in certificate.addresses)
