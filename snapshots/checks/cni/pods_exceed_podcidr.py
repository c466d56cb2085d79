"""A Node should not be allowed more Pods than it has addresses for.

The kubelet's maxPods (Node status, capacity.pods) against the podCIDR: a /24 gives 254 addresses, less the gateway.
Beyond that, Pods are scheduled to the Node and stay in ContainerCreating. Pods in the host's network need none.

Fix: lower maxPods in the kubelet's configuration, or give new Nodes larger ranges (--node-cidr-mask-size).
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from snapshots.registry.cluster import Cluster, evidence, pod_networks

SEVERITY = Severity.WARNING
NOT_FOR_PODS = 3
"""The network's address, the broadcast address, the gateway."""


def find(cluster: Cluster) -> Iterator[Finding]:
    nodes = cluster.nodes()
    owner = cluster.owns_addresses()
    if owner:
        raise NotApplicable(f"{owner}: the network plugin gives out addresses by itself")
    weighed = [node for node in nodes if _allowed(node.at("status", "capacity", "pods")) and any(pod_networks(node))]
    if not weighed:
        raise EvidenceMissing("no Node has both a podCIDR and a capacity of Pods")
    for node in weighed:
        allowed = _allowed(node.at("status", "capacity", "pods"))
        for network in pod_networks(node):
            usable = network.num_addresses - NOT_FOR_PODS
            if network.version == 4 and allowed > usable:
                yield Finding(
                    f"Node {node.name} allows {allowed} Pods and {network} has addresses for {usable}",
                    (evidence(node, "status", "capacity", "pods"), evidence(node, "spec", "podCIDR")),
                )


def _allowed(quantity: object) -> int:
    text = str(quantity or "")
    return int(text) if text.isdecimal() else 0
