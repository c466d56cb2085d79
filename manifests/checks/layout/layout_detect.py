"""What kind of node this is, decided before anything is judged.

drtool judges nodes that kubeadm made: stacked etcd, external etcd, an etcd-only host, a worker. RKE2, k3s, k0s,
MicroK8s, Talos, OpenShift and kubespray keep other files in other places; their nodes are named and not judged.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.layout import DISTRIBUTIONS, Layout, distribution
from manifests.node import Node

SEVERITY = Severity.INFO


def find(node: Node) -> Iterator[Finding]:
    if node.layout is Layout.NOT_KUBEADM:
        name = distribution(node)
        traces = [path for path, owner in DISTRIBUTIONS.items() if owner == name]
        evidence = [Evidence(path) for path in traces if node.entry(path).kind not in {"absent", "unreadable"}]
        yield Finding(f"This is not a kubeadm tree but one of {name}: drtool does not judge it", tuple(evidence))
