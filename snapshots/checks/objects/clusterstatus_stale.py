"""kubeadm's ClusterStatus must not list nodes that are gone.

Before 1.22, kubeadm kept the API servers' addresses under ClusterStatus in its ConfigMap, and joins and upgrades ask
etcd on every node listed there: one that is gone makes them fail. From 1.22 on it is not used any more.

Fix: remove the node from ClusterStatus in the ConfigMap kube-system/kubeadm-config.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from snapshots.registry.cluster import Cluster, evidence, version

SEVERITY = Severity.ERROR
UNUSED_FROM = (1, 22)
Found = tuple[Mapping[str, Any], Mapping[str, Any], str]
"""ClusterStatus, ClusterConfiguration, and where they stand."""


def find(cluster: Cluster) -> Iterator[Finding]:
    status, configuration, source = _saved(cluster) or _kept(cluster)
    at = version(str(configuration.get("kubernetesVersion")))
    if at is None:
        raise EvidenceMissing("kubeadm-config does not tell the cluster's version")
    if at[:2] >= UNUSED_FROM:
        raise NotApplicable("ClusterStatus is not used from 1.22 on")
    listed = status.get("apiEndpoints")
    nodes = {node.name for node in cluster.nodes()}
    for name in sorted(set(listed if isinstance(listed, dict) else ()) - nodes):
        yield Finding(
            f"kubeadm's ClusterStatus lists {name}, which is no Node",
            (Evidence(source, text=f"apiEndpoints: {name}"),),
        )


def _saved(cluster: Cluster) -> Found | None:
    """kubeadm's ConfigMap as somebody saved it beside the db."""
    status, configuration = cluster.saved.get("ClusterStatus"), cluster.saved.get("ClusterConfiguration")
    return (status, configuration, cluster.saved_path) if status and configuration else None


def _kept(cluster: Cluster) -> Found:
    configuration, found = cluster.kubeadm()
    if found.at("data", "ClusterStatus") is None:
        raise NotApplicable("kubeadm-config has no ClusterStatus")
    status, _ = cluster.document("kubeadm-config", "ClusterStatus")
    return status, configuration, evidence(found).path
