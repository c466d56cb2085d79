"""containerd's CRI plugin must not be disabled: it is what the kubelet talks to.

Docker's packages ship a config.toml with `disabled_plugins = ["cri"]`. containerd runs, and the kubelet says `unknown
service runtime.v1.RuntimeService`, as it does for three other reasons. A node that goes through cri-dockerd does not
need the plugin; other plugins may be disabled at will.

Fix: take the plugin off the list (or write a full file: `containerd config default`), restart containerd.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.host.containerd import CRI, configurations, in_use, line_of
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "cgroup-driver-mismatch",
    "sandbox-image-unavailable",
    "runtime-not-running",
    "kubelet-not-running",
    "component-not-ready",
    "container-exited",
    "cni-config-missing",
)


def find(node: Node) -> Iterator[Finding]:
    in_use(node)
    for file in configurations(node):
        listed = file.data.get("disabled_plugins")
        for name in listed if isinstance(listed, list) else ():
            if name in CRI or name == "cri":
                yield Finding(
                    f"containerd's CRI plugin is disabled in {file.path}",
                    (line_of(node, file.path, r"disabled_plugins"), line_of(node, file.path, rf'["\']{name}["\']')),
                )
                return
