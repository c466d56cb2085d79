"""etcd must listen on addresses that this host has.

It exits with `bind: cannot assign requested address` otherwise. Seen after copying another node's manifest, and when
listen or advertise URLs are pinned in ClusterConfiguration's etcd.local.extraArgs, which every joining node then takes.

Fix: correct the URLs in etcd.yaml; advertised URLs must be this member's own.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.identity import ETCD_ADVERTISE, ETCD_LISTEN, url_addresses
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "san-missing-own-address",
    "etcd-name-vs-initial-cluster",
    "etcd-membership-stale",
    "etcd-quorum-impossible",
    "container-exited",
)


def find(node: Node) -> Iterator[Finding]:
    for name in (*ETCD_LISTEN, *ETCD_ADVERTISE):
        for flag in node.etcd.all(name):
            for address in url_addresses(flag.value):
                if not node.addresses.has(address):
                    verb = "listens on" if name in ETCD_LISTEN else "advertises"
                    yield Finding(
                        f"etcd {verb} {address} (--{name}), which this host does not have",
                        evidence=(flag.evidence, *node.addresses.evidence()),
                    )
