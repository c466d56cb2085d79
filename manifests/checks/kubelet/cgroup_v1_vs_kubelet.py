"""The host's cgroup version must be one that this kubelet takes.

Since 1.35 the kubelet refuses a cgroup v1 host unless failCgroupV1 is false; a hybrid hierarchy counts as version 1.
Kubelets before 1.19 cannot read cgroup v2 (`Following Cgroup subsystem not mounted`), which an upgrade of the operating
system switches to.

Fix: boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1), or set failCgroupV1: false until then.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.host.cgroups import hierarchy
from manifests.installed import kubelet_configuration, kubelet_release
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("kubelet-not-running", "container-exited", "component-not-ready", "cgroup-controller-missing")
REFUSES_V1_SINCE = (1, 35)
READS_V2_SINCE = (1, 19)


def find(node: Node) -> Iterator[Finding]:
    number, evidence = hierarchy(node)
    release = kubelet_release(node)
    if number == 2:
        if release.numbers < READS_V2_SINCE:
            yield Finding(f"The kubelet {release} cannot read this host's cgroup v2", (evidence, release.evidence))
        return
    if not node.kubelet.flag("fail-cgroupv1"):
        kubelet_configuration(node)
    default = release.numbers >= REFUSES_V1_SINCE
    fails, at = node.kubelet.setting("fail-cgroupv1", "failCgroupV1", default=default)
    if str(fails).lower() == "true":
        title = f"The kubelet {release} refuses this host's cgroup v1 (failCgroupV1 is not false)"
        yield Finding(title, (evidence, at, release.evidence))
