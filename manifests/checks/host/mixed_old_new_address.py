"""Two generations of this node's own address stand in its files.

After the address moved somebody corrected part of the files. The rest still names the old one: it seems to work until
the next restart, when etcd cannot bind or clients are refused.

Fix: make every place name the address that the host has, certificates and etcd's member included: `drtool readdress`.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Fix, Severity
from manifests.identity import certified, of_other_members, own_places
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
