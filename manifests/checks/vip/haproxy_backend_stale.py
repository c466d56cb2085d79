"""Every backend of the balancer on this node is an address that no control plane has any more.

haproxy (or nginx) keeps its list by hand; after nodes were replaced or moved it may lead nowhere. One dead backend
among good ones is what a balancer is for, and fine.

Fix: write the control planes' present addresses into the backend section and reload.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from manifests.identity import members
from manifests.network.addresses import Address, address_of
from manifests.network.balancer import Server, servers
from manifests.node import Node

SEVERITY = Severity.ERROR


def find(node: Node) -> Iterator[Finding]:
    groups: dict[str, list[Server]] = {}
    for server in servers(node):
        if server.port in _ports(node):
            groups.setdefault(server.section, []).append(server)
    if not groups:
        raise NotApplicable("no balancer with API servers behind it on this node")
    known = _known(node)
    for section, backends in groups.items():
        found = {backend.host: node.resolve(backend.host) for backend in backends}
        if not all(found.values()):
            continue  # names that only DNS could tell
        if not any(address in known or address.is_loopback for addresses in found.values() for address in addresses):
            yield Finding(
                f"None of the backends of {section} ({', '.join(found)}) is a control plane that this node knows",
                (*(backend.evidence for backend in backends[:3]), *node.addresses.evidence()),
            )


def _ports(node: Node) -> set[int]:
    apiserver = node.components.get("kube-apiserver")
    port = apiserver.value("secure-port") if apiserver else ""
    return {6443, int(port) if port.isdecimal() else 6443}


def _known(node: Node) -> set[Address]:
    """EvidenceMissing where not even this node's own address is known, or it is no control plane."""
    if not node.layout.control_plane:
        raise EvidenceMissing(f"a {node.layout} node does not know the control planes")
    advertised = address_of(node.apiserver.value("advertise-address"))
    others = {address for addresses in members(node).values() for address in addresses}
    return {*node.addresses.own, *others, *([advertised] if advertised is not None else [])}
