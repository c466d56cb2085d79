"""A virtual address or a balancer runs as a static Pod beside the control plane.

kube-vip, keepalived and haproxy in the manifests directory are a common and healthy way to make the endpoint outlive a
node. It is told so that the other findings can be read with it in mind.

Fix: none needed.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from manifests.node import Node

SEVERITY = Severity.INFO
KINDS = ("kube-vip", "keepalived", "haproxy")


def find(node: Node) -> Iterator[Finding]:
    if not node.layout.programs:
        raise NotApplicable(f"a {node.layout} node has no control plane")
    for pod in node.pods:
        kind = next((kind for kind in KINDS if any(kind in c.image or kind in c.name for c in pod.containers)), None)
        if kind is not None:
            yield Finding(f"{kind} runs as a static Pod on this node", (pod.evidence("metadata", "name"),))
