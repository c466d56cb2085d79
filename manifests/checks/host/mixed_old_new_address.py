"""Two generations of this node's own address stand in its files.

After the address moved somebody corrected part of the files. The rest still names the old one: it seems to work until
the next restart, when etcd cannot bind or clients are refused. A kubelet whose --node-ip alone is the old one runs on
(`node IP: ... not found in the host's network interfaces`) and no longer reports an address of the node: an error.

Fix: make every place name the address that the host has, certificates and etcd's member included: `drtool readdress`;
--node-ip in the file that gives it, and restart the kubelet.
"""

from collections.abc import Iterator, Sequence

from drtool.core.report import Finding, Fix, Severity
from manifests.identity import Place, certified, of_other_members, own_places
from manifests.network.addresses import address_of
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "advertise-address-not-local",
    "etcd-urls-not-local",
    "probe-target-mismatch",
    "san-missing-own-address",
    "kubeconfig-server-unknown-address",
    "hosts-override-endpoint",
    "etcd-servers-vs-etcd",
    "etcd-quorum-impossible",
    "node-ip-vs-advertise-subnet",
)


def find(node: Node) -> Iterator[Finding]:
    places = own_places(node)
    for family in (4, 6):
        here = [place for place in places if place.address.version == family]
        gone = [place for place in here if not node.addresses.has(place.address)]
        kept = [place for place in here if node.addresses.has(place.address)]
        if not gone or not kept:
            continue
        old = gone[0].address
        kinds = {place.kind for place in gone if place.address == old}
        was_own = old in certified(node) or len(kinds - {"probe"}) > 1
        if was_own and old not in of_other_members(node):
            new = kept[0].address
            yield Finding(
                f"Part of this node's files name its old address {old}, the others {new}",
                (gone[0].evidence, kept[0].evidence, node.addresses.local.get(new, kept[0].evidence)),
                fix=Fix(f"drtool readdress --to {new}", "makes every place name the same address"),
            )
    yield from _node_ip(node, places)


def _node_ip(node: Node, places: Sequence[Place]) -> Iterator[Finding]:
    given = node.kubelet.flag("node-ip")
    for part in given.value.split(",") if given else ():
        address = address_of(part.strip())
        if given is None or address is None or node.addresses.has(address):
            continue
        known = any(local.version == address.version for local in node.addresses.local)
        moved = any(p.address.version == address.version and not node.addresses.has(p.address) for p in places)
        if known and not moved:  # else the family's addresses are unknown, or the whole node is at an old one
            yield Finding(
                f"The kubelet is given the node IP {address}, which this host does not have",
                (given.evidence, *node.addresses.evidence()),
                severity=Severity.ERROR,
            )
