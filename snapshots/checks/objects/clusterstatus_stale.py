"""kubeadm's ClusterStatus must not list nodes that are gone.

Before 1.22, kubeadm kept the API servers' addresses under ClusterStatus in its ConfigMap, and joins and upgrades ask
etcd on every node listed there: one that is gone makes them fail. From 1.22 on it is not used any more.

Fix: remove the node from ClusterStatus in the ConfigMap kube-system/kubeadm-config.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from snapshots.registry.cluster import Cluster, evidence, version

SEVERITY = Severity.ERROR
UNUSED_FROM = (1, 22)


def find(cluster: Cluster) -> Iterator[Finding]:
    document, found = cluster.kubeadm()
    if found.at("data", "ClusterStatus") is None:
        raise NotApplicable("kubeadm-config has no ClusterStatus")
    at = version(str(document.get("kubernetesVersion")))
    if at is None:
        raise EvidenceMissing("kubeadm-config does not tell the cluster's version")
    if at[:2] >= UNUSED_FROM:
        raise NotApplicable("ClusterStatus is not used from 1.22 on")
    status, _ = cluster.document("kubeadm-config", "ClusterStatus")
    listed = status.get("apiEndpoints")
    nodes = {node.name for node in cluster.nodes()}
    for name in sorted(set(listed if isinstance(listed, dict) else ()) - nodes):
        yield Finding(
            f"kubeadm's ClusterStatus lists {name}, which is no Node",
            (Evidence(evidence(found).path, text=f"apiEndpoints: {name}"),),
        )
