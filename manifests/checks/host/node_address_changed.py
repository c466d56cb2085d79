"""This node's own address is gone, and every file still names it.

DHCP, a new NIC or a restored virtual machine gave the host another address, or no network came up at all. etcd and the
API server bind the old one and crash; controller-manager and scheduler go on and mean nothing. Editing the address is
not enough: certificates lack the new one, and etcd's membership holds the old one.

Fix: give the host its old address back, which is quickest, or move the whole node with `drtool readdress`.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from drtool.core.report import Finding, Fix, Severity
from manifests.identity import Place, of_other_members, own_places
from manifests.network.addresses import Address
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "advertise-address-not-local",
    "etcd-urls-not-local",
    "probe-target-mismatch",
    "san-missing-own-address",
    "kubeconfig-server-unknown-address",
    "hosts-override-endpoint",
    "etcd-quorum-impossible",
    "kubelet-client-link",
)


def find(node: Node) -> Iterator[Finding]:
    places = [place for place in own_places(node) if place.kind in {"etcd", "apiserver", "probe", "kubeconfig"}]
    bound = [place for place in places if place.kind in {"etcd", "apiserver"}]
    for family in (4, 6):
        here = [place for place in bound if place.address.version == family]
        gone = {place.address for place in here if not node.addresses.has(place.address)}
        named = {place.address for place in places if place.address.version == family}
        if len(gone) != 1 or named != gone or gone & of_other_members(node) or _stray(node, places, gone):
            continue
        old = next(iter(gone))
        new = candidates(node, family)
        has = " and ".join(map(str, new)) or ("none of that family" if node.addresses.own else "only local ones")
        yield Finding(
            f"This node's address {old} is gone; it has {has}",
            evidence=(
                here[0].evidence,
                *(node.addresses.local[address] for address in new[:3] or node.addresses.local),
            ),
            fix=_fix(new) if node.addresses.own else None,
        )


def _stray(node: Node, places: list[Place], gone: set[Address]) -> bool:
    """An address that one program alone is given, beside one of the other family that is here: not the node's own."""
    here = any(node.addresses.has(place.address) for place in places)
    return here and len({place.kind for place in places if place.address in gone}) == 1


def candidates(node: Node, family: int) -> tuple[Address, ...]:
    """Own addresses that could be the new one: none that a CNI bridge holds."""
    pods = _pod_ranges(node)
    return tuple(a for a in node.addresses.own if a.version == family and not any(a in net for net in pods))


def _pod_ranges(node: Node) -> list[IPv4Network | IPv6Network]:
    manager = node.components.get("kube-controller-manager")
    ranges = []
    for text in manager.names("cluster-cidr") if manager else ():
        try:
            ranges.append(ip_network(text, strict=False))
        except ValueError:
            continue
    return ranges


def _fix(new: tuple[Address, ...]) -> Fix:
    to = str(new[0]) if len(new) == 1 else "ADDRESS"
    return Fix(
        f"drtool readdress --to {to}",
        "moves manifests, probes, kubeconfigs, certificates, etcd's member and the cluster's records to it",
    )
