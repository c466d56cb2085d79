"""Control-plane Pods need a priority that the kubelet never evicts for.

With system-node-critical (or a priority of two billion and more) a static Pod is evicted last and admitted first. Older
kubeadm wrote the annotation scheduler.alpha.kubernetes.io/critical-pod instead.

Fix: set priorityClassName: system-node-critical and priority: 2000001000 in the manifest.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
CRITICAL = 2_000_000_000
CLASSES = {"system-node-critical", "system-cluster-critical"}
ANNOTATION = "scheduler.alpha.kubernetes.io/critical-pod"


def find(node: Node) -> Iterator[Finding]:
    if not node.components:
        raise NotApplicable("no control-plane Pods here")
    for program, component in node.components.items():
        document = component.pod.document
        priority = document.get("spec", "priority", default=0)
        critical = isinstance(priority, int) and priority >= CRITICAL
        annotated = document.get("metadata", "annotations", ANNOTATION) is not None
        if not critical and document.get("spec", "priorityClassName") not in CLASSES and not annotated:
            yield Finding(f"{program} has no critical priority: the kubelet may evict it", (document.evidence("spec"),))
