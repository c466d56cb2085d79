"""kubelet and runtime must use one cgroup driver, systemd where systemd is init.

Who wins depends on the version: where the runtime answers the RuntimeConfig call (containerd 2, CRI-O 1.28) the kubelet
takes its driver; containerd 1 does not answer, so the kubelet's own setting counts, and kubeadm sets systemd. A
mismatch shows only later, as containers that die without an error.

Fix: SystemdCgroup = true in containerd's configuration.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.host.cgroups import runtime_driver
from manifests.node import Node

SEVERITY = Severity.ERROR


def find(node: Node) -> Iterator[Finding]:
    endpoint, _ = node.kubelet.setting("container-runtime-endpoint", "containerRuntimeEndpoint", default="")
    configured, evidence = node.kubelet.setting("cgroup-driver", "cgroupDriver", default="systemd")
    driver = runtime_driver(node, str(endpoint))
    if driver.name == configured:
        return
    wins = "the kubelet takes the runtime's" if driver.answers else "the runtime does not tell the kubelet"
    yield Finding(
        f"{driver.runtime} uses {driver.name}, the kubelet {configured}: {wins}",
        (driver.evidence, evidence),
        severity=Severity.INFO if driver.answers else None,
    )
