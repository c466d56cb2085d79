"""A Node's Pod addresses must lie in the cluster's range.

The cluster's range is the controller manager's --cluster-cidr, or kubeadm's podSubnet. A Node whose podCIDR lies
outside it was made under another setting: kube-proxy, network policies and masquerading rules treat its Pods as
strangers, and the controller manager refuses to go on with it.

Fix: delete the Node object and let its kubelet register again; or set --cluster-cidr to a range that holds all Nodes'.
"""

from collections.abc import Iterator
from ipaddress import ip_network

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from snapshots.registry.cluster import Cluster, Network, evidence, flags, pod_networks

SEVERITY = Severity.ERROR
CONTROLLER_MANAGER = "kube-controller-manager"


def find(cluster: Cluster) -> Iterator[Finding]:
    refuse_own(cluster)
    yield from strangers(cluster, *_cluster_ranges(cluster))


def refuse_own(cluster: Cluster) -> None:
    """NotApplicable where a network plugin gives out addresses by itself."""
    cluster.nodes()  # without any there is nothing to say
    owner = cluster.owns_addresses()
    if owner:
        raise NotApplicable(f"{owner}: the network plugin gives out addresses by itself")


def strangers(cluster: Cluster, ranges: list[Network], source: Evidence) -> Iterator[Finding]:
    for node in cluster.nodes():
        for network in pod_networks(node):
            same = [each for each in ranges if each.version == network.version]
            if same and not any(network.subnet_of(each) for each in same):  # type: ignore[arg-type]
                yield Finding(
                    f"Node {node.name} has Pod addresses {network} outside the cluster's {', '.join(map(str, same))}",
                    (evidence(node, "spec", "podCIDRs"), source),
                )


def _cluster_ranges(cluster: Cluster) -> tuple[list[Network], Evidence]:
    for pod in cluster.components(CONTROLLER_MANAGER):
        text = flags(pod, CONTROLLER_MANAGER).get("cluster-cidr", "")
        if text:
            return parsed(text), Evidence(evidence(pod).path, text=f"--cluster-cidr={text}")
    document, found = cluster.kubeadm()
    networking = document.get("networking")
    text = str(networking.get("podSubnet") or "") if isinstance(networking, dict) else ""
    if not text:
        raise EvidenceMissing("neither --cluster-cidr nor kubeadm's podSubnet is known")
    return parsed(text), Evidence(evidence(found).path, text=f"podSubnet: {text}")


def parsed(text: str) -> list[Network]:
    try:
        return [ip_network(part.strip(), strict=False) for part in text.split(",")]
    except ValueError as wrong:
        raise EvidenceMissing(f"{text} is no address range") from wrong
