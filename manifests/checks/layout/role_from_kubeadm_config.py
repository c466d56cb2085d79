"""kubeadm's own record of where etcd runs must agree with what lies on the node.

ClusterConfiguration says `etcd.local` or `etcd.external`. A node that runs etcd under a configuration that says
external, or the reverse, comes from a migration that was not finished: the next upgrade does the wrong thing.

Fix: correct the kubeadm-config ConfigMap (`kubectl -n kube-system edit cm kubeadm-config`).
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from manifests.layout import Layout
from manifests.node import Node

SEVERITY = Severity.INFO


def find(node: Node) -> Iterator[Finding]:
    if not node.layout.control_plane:
        raise NotApplicable(f"a {node.layout} node has no ClusterConfiguration of its own")
    configuration = node.cluster_configuration
    external = bool(configuration.get("etcd", "external"))
    if external != (node.layout is Layout.EXTERNAL_ETCD):
        says, has = ("external", "runs etcd itself") if external else ("local", "has no etcd")
        yield Finding(
            f"kubeadm's configuration says that etcd is {says}, and this node {has}",
            (configuration.evidence("etcd", "external" if external else "local"),),
        )
