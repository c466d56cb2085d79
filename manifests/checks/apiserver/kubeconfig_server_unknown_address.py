"""Each kubeconfig must point to an address that is somebody's: this node, a member, a VIP or the cluster's endpoint.

controller-manager.conf and scheduler.conf point to the local API server; admin.conf and kubelet.conf to the cluster's
endpoint, or (ControlPlaneKubeletLocalMode) the local one. A load balancer that was replaced leaves its old address in
the files: the API server is well, and nothing is scheduled. So does a port of this node on which nobody serves.

Fix: write the file anew: `kubeadm init phase kubeconfig controller-manager` (scheduler, kubelet, admin).
"""

from collections.abc import Iterable, Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Layer, Severity
from manifests.identity import endpoint, members
from manifests.kubeconfig import split_url
from manifests.network.addresses import Address, address_of
from manifests.network.balancer import binds
from manifests.network.vip import virtual_addresses
from manifests.node import Node
from manifests.pki.serving import API_SERVER, serving

SEVERITY = Severity.ERROR
FILES = {
    "kubelet.conf": (Severity.CRITICAL, Layer.KUBELET),
    "controller-manager.conf": (Severity.ERROR, Layer.CONTROLLERS),
    "scheduler.conf": (Severity.ERROR, Layer.CONTROLLERS),
    "admin.conf": (Severity.WARNING, Layer.APISERVER),
    "super-admin.conf": (Severity.WARNING, Layer.APISERVER),
}


def find(node: Node) -> Iterator[Finding]:
    if not node.layout.control_plane:
        raise NotApplicable(f"what a {node.layout} node should dial is known to the cluster only")
    known = set(node.addresses.local) | _known(node)
    ports = _ports(node)
    for name, (severity, layer) in FILES.items():
        config = node.kubeconfigs.get(f"/etc/kubernetes/{name}")
        if config is None or not config.host:
            continue
        address = address_of(config.host)
        astray = (address is not None and not _reaches((address,), known)) or (
            address is None and _unknown_name(node, config.host, known)
        )
        deaf = _here(node, config.host) and bool(ports) and config.port not in ports
        if not astray and not deaf:
            continue
        yield Finding(
            f"{name} points to {config.host}, which is neither this node, nor a member, nor the cluster's endpoint"
            if astray
            else f"{name} points to port {config.port} of this node, where no API server or balancer listens",
            (config.server_evidence, *_expected(node)),
            severity=severity,
            layer=layer,
            fix=Fix("drtool fix kubeconfig-server-unknown-address", f"points {name} to where its program should dial"),
        )


def _reaches(addresses: Iterable[Address], known: set[Address]) -> bool:
    return any(address.is_loopback or address in known for address in addresses)


def _here(node: Node, host: str) -> bool:
    """An address of this node alone: a VIP or the endpoint may be served on a port that this node does not know."""
    address = address_of(host)
    elsewhere = {*virtual_addresses(node), *node.resolve(split_url(endpoint(node))[0])}
    return address is not None and address not in elsewhere and (address.is_loopback or node.addresses.has(address))


def _ports(node: Node) -> set[int]:
    """Where the API server or something before it answers; its probes' port too, lest one fault be named twice."""
    apiserver = node.components.get("kube-apiserver")
    if apiserver is None:
        return set()
    port = apiserver.value("secure-port", "6443")
    found = {int(port)} if port.isdecimal() else set()
    found |= {probe.port for probe in apiserver.container.probes if probe.port is not None}
    found |= {bind.port for bind in binds(node) if bind.port is not None}
    found |= {port for pod in node.pods for (_, port), _ in pod.host_ports}
    try:
        return found | {listener.port for listener in node.listeners}
    except (EvidenceMissing, NotApplicable):
        return found


def _unknown_name(node: Node, name: str, known: set[Address]) -> bool:
    """A name that only DNS could tell is somebody else's where kubeadm's configuration and the certificate miss it."""
    host = name.lower().rstrip(".")
    if host in {split_url(endpoint(node))[0].lower().rstrip("."), node.name, "localhost"}:
        return False
    addresses = node.resolve(host)
    if addresses:
        return not _reaches(addresses, known)
    if not _endpoint_is_known(node):
        return False
    try:
        return not serving(node, API_SERVER).covers(host)
    except (EvidenceMissing, NotApplicable):
        return False


def _known(node: Node) -> set[Address]:
    """Addresses that a kubeconfig may name besides this host's own."""
    found = {address for addresses in members(node).values() for address in addresses}
    found |= set(virtual_addresses(node))
    host = split_url(endpoint(node))[0]
    found |= set(node.resolve(host)) if host else set()
    if not _endpoint_is_known(node):
        found |= _agreed(node) | _served(node)
    return found


def _endpoint_is_known(node: Node) -> bool:
    try:
        return bool(node.cluster_configuration.data)
    except EvidenceMissing:
        return False


def _agreed(node: Node) -> set[Address]:
    """Without kubeadm's configuration: what admin.conf and kubelet.conf agree on is taken for the endpoint."""
    names = ("admin.conf", "kubelet.conf")
    configs = [config for name in names if (config := node.kubeconfigs.get(f"/etc/kubernetes/{name}"))]
    addresses = {address_of(config.host) for config in configs}
    return {a for a in addresses if a is not None} if len(configs) > 1 and len(addresses) == 1 else set()


def _served(node: Node) -> set[Address]:
    """Without it, too: what the API server's certificate covers may be the endpoint."""
    try:
        return set(serving(node, API_SERVER).addresses)
    except (EvidenceMissing, NotApplicable):
        return set()


def _expected(node: Node) -> tuple[Evidence, ...]:
    try:
        configuration = node.cluster_configuration
    except EvidenceMissing:
        return node.addresses.evidence()
    return (configuration.evidence("controlPlaneEndpoint"), *node.addresses.evidence())
