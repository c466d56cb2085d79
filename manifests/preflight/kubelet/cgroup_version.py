"""cgroup v1 is refused by kubeadm and by the kubelet from 1.35 on, unless failCgroupV1 is false.

Fix: boot with the unified hierarchy (every current distribution's default).
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.host.cgroups import hierarchy
from manifests.node import Node

SEVERITY = Severity.ERROR
KUBEADM = ("SystemVerification",)
REFUSED_FROM = (1, 35, 0)


def find(node: Node) -> Iterator[Finding]:
    version, evidence = hierarchy(node)
    tolerated, _ = node.kubelet.setting("fail-cgroupv1", "failCgroupV1", default=None)
    if version == 1 and str(tolerated).lower() != "false":
        old = node.kubelet.version is not None and node.kubelet.version < REFUSED_FROM
        yield Finding(
            "This host uses cgroup v1, which the kubelet refuses from 1.35 on",
            (evidence,),
            severity=Severity.WARNING if old else None,
        )
