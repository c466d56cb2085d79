"""No two Nodes may share Pod addresses.

Two Nodes whose podCIDRs overlap give the same address to two Pods: routes lead to one of them, and the other is
reached now and then or never. It happens when a Node is made by hand or from a copy, or when a restored db and newer
Nodes meet.

Fix: delete the younger Node object and let its kubelet register again, so that it gets a range of its own; its Pods
are made anew.
"""

from collections.abc import Iterator
from itertools import combinations

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from snapshots.registry.cluster import Cluster, evidence, pod_networks

SEVERITY = Severity.ERROR


def find(cluster: Cluster) -> Iterator[Finding]:
    nodes = cluster.nodes()
    owner = cluster.owns_addresses()
    if owner:
        raise NotApplicable(f"{owner}: the network plugin gives out addresses by itself")
    ranges = [(node, network) for node in nodes for network in pod_networks(node)]
    for (one, first), (other, second) in combinations(ranges, 2):
        if one.name != other.name and first.version == second.version and first.overlaps(second):
            yield Finding(
                f"Nodes {one.name} ({first}) and {other.name} ({second}) have the same Pod addresses",
                (evidence(one, "spec", "podCIDRs"), evidence(other, "spec", "podCIDRs")),
            )
