"""The kubelet and the container runtime must use the same cgroup driver.

With two managers of one tree containers are killed every few minutes without an error of their own (`Pod sandbox
changed, it will be killed and re-created`), or only under memory pressure. kubeadm sets systemd; containerd's default
is cgroupfs, CRI-O's systemd. From 1.31 on (before, behind a feature gate) the kubelet takes the driver from a runtime
that tells it: containerd 2 and CRI-O 1.28 do, containerd 1 does not, so there the kubelet's own setting counts.

Fix: SystemdCgroup = true in the runc options of /etc/containerd/config.toml (from `containerd config default`), restart
containerd and the kubelet.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.host.cgroups import runtime_driver
from manifests.installed import kubelet_configuration, kubelet_release
from manifests.messages import last_said
from manifests.node import Node
from manifests.releases import tables

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
GATE = "KubeletCgroupDriverFromCRI"


def find(node: Node) -> Iterator[Finding]:
    kubelet = node.kubelet
    endpoint, _ = kubelet.setting("container-runtime-endpoint", "containerRuntimeEndpoint", default="")
    if not kubelet.flag("cgroup-driver"):
        kubelet_configuration(node)
    configured, evidence = kubelet.setting("cgroup-driver", "cgroupDriver", default="cgroupfs")
    driver = runtime_driver(node, str(endpoint))
    if driver.name == str(configured) or (driver.answers and _asks(node)):
        return
    churn = last_said(node, r"Pod sandbox changed, it will be killed", "kubelet")
    yield Finding(
        f"The kubelet's cgroup driver is {configured}, {driver.runtime}'s is {driver.name}",
        (evidence, driver.evidence, *((churn.evidence,) if churn else ())),
    )


def _asks(node: Node) -> bool:
    """Whether this kubelet takes the driver from the runtime."""
    gate = tables.gate(GATE, kubelet_release(node).numbers, "kubelet")
    configured = node.kubelet.config.get("featureGates", GATE) if node.kubelet.config else None
    if gate is None:
        return kubelet_release(node).numbers >= (1, 34)
    return gate.default if configured is None or gate.locked else bool(configured)
