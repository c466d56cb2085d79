"""The kubelet needs a runtime that speaks its version of CRI.

From 1.26 on the kubelet speaks CRI v1 only, which containerd has since 1.6. With an older one it says `unknown service
runtime.v1.RuntimeService` and exits. It happens when Kubernetes is upgraded and the runtime is not.

Fix: upgrade containerd (1.7 or 2.x), restart it and the kubelet.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.host.containerd import in_use, release
from manifests.installed import kubelet_release
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("runtime-not-running", "kubelet-not-running", "component-not-ready", "container-exited")
CRI_V1_ONLY, HAS_CRI_V1 = (1, 26, 0), (1, 6, 0)


def find(node: Node) -> Iterator[Finding]:
    in_use(node)
    numbers, told = release(node)
    kubelet = kubelet_release(node)
    if kubelet.numbers >= CRI_V1_ONLY and numbers < HAS_CRI_V1:
        yield Finding(
            f"containerd {'.'.join(map(str, numbers))} does not speak CRI v1, which kubelet {kubelet} needs",
            (told, kubelet.evidence),
        )
