"""A Node must have a range of Pod addresses.

The controller manager gives each Node a podCIDR out of --cluster-cidr. Without one, plugins that rely on it (flannel,
bridge with host-local) give Pods on that Node no address, and they stay in ContainerCreating. Plugins with address
management of their own (Calico, Cilium) do not read it. A Node that has only just joined waits for the controller
manager's leader: half a minute, seen where the leader had to be elected anew.

Fix: set --allocate-node-cidrs and --cluster-cidr on the controller manager; where the range is used up, free the Nodes
that no longer exist.
"""

from collections.abc import Iterator
from datetime import timedelta

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from snapshots.registry.cluster import Cluster, evidence, flags
from snapshots.registry.objects import Object
from snapshots.registry.tables.cells import moment

SEVERITY = Severity.ERROR
CONTROLLER_MANAGER = "kube-controller-manager"
WAITING = timedelta(minutes=1)


def find(cluster: Cluster) -> Iterator[Finding]:
    nodes = cluster.nodes()
    owner = cluster.owns_addresses()
    if owner:
        raise NotApplicable(f"{owner}: the network plugin gives out addresses by itself")
    lacking = [node for node in nodes if not node.at("spec", "podCIDR") and not node.at("spec", "podCIDRs")]
    if len(lacking) == len(nodes) and not _allocates(cluster):
        raise NotApplicable("nothing gives Nodes a podCIDR here")
    for node in lacking:
        if _just_joined(cluster, node):
            continue
        yield Finding(f"Node {node.name} has no podCIDR", (evidence(node, "spec", "podCIDR"),))


def _just_joined(cluster: Cluster, node: Object) -> bool:
    made = moment(node.metadata.get("creationTimestamp"))
    try:
        return made is not None and cluster.now() - made <= WAITING
    except EvidenceMissing:
        return False


def _allocates(cluster: Cluster) -> bool:
    """Whether a controller manager is told to give out ranges."""
    running = (flags(pod, CONTROLLER_MANAGER) for pod in cluster.components(CONTROLLER_MANAGER))
    return any(each.get("allocate-node-cidrs") in ("true", "") and "cluster-cidr" in each for each in running)
