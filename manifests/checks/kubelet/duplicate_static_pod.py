"""No two files in the static Pod directory may define the same Pod.

The kubelet reads every file there that does not start with a dot, whatever its extension: kube-apiserver.yaml.bak is a
manifest too. Which of the two wins is chance, so edits seem to have no effect, and upgrades wait for a Pod that never
changes.

Fix: move the copy out of the directory, to another place on the same file system.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Fix, Severity
from manifests.node import Node
from manifests.pod import StaticPod

SEVERITY = Severity.CRITICAL
EXPLAINS = ("ports-in-use", "container-exited", "component-not-ready")


def find(node: Node) -> Iterator[Finding]:
    seen: dict[tuple[str, str], StaticPod] = {}
    for pod in sorted(node.pods, key=lambda pod: (not pod.path.endswith(f"/{pod.name}.yaml"), pod.path)):
        first = seen.setdefault((pod.namespace, pod.name), pod)
        if first is not pod:
            yield Finding(
                f"{pod.path} and {first.path} define the same Pod {pod.namespace}/{pod.name}",
                (pod.evidence("metadata", "name"), first.evidence("metadata", "name")),
                fix=Fix("drtool fix duplicate-static-pod", f"parks {pod.path} outside the directory"),
            )
