"""Swap must be off, unless the kubelet is told to live with it.

The kubelet refuses to start with swap (`running with swap on is not supported`) while failSwapOn is not false, which is
its default. `swapoff -a` does not outlive a reboot: entries in /etc/fstab and systemd's swap units count too, as a
risk. Compressed swap in memory (zram) is counted by the kubelet as well; it is an error here once the kubelet says so.

Fix: `swapoff -a`, take swap out of /etc/fstab and mask its units; or failSwapOn: false with memorySwap as wanted.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.host.mounts import fstab
from manifests.installed import kubelet_configuration
from manifests.messages import last_said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("kubelet-not-running", "container-exited", "component-not-ready")
SWAPS = "/proc/swaps"


def find(node: Node) -> Iterator[Finding]:
    fails, at = node.kubelet.setting("fail-swap-on", "failSwapOn", default=True)
    if str(fails).lower() == "false":
        return
    if not node.kubelet.flag("fail-swap-on"):
        kubelet_configuration(node)
    active = [(match[1], evidence) for match, evidence in node.find(SWAPS, r"^(/\S+)\s+\w+\s+\d+")]
    refused = last_said(node, "running with swap on is not supported", "kubelet")
    for device, evidence in active:
        only_zram = all("zram" in name for name, _ in active)
        yield Finding(
            f"Swap is active on {device}, and the kubelet refuses to start with it",
            (evidence, at, *((refused.evidence,) if refused else ())),
            severity=Severity.WARNING if only_zram and refused is None else None,
        )
        return
    node.text(SWAPS)  # EvidenceMissing where the kernel's file is not in the tree
    for what, evidence in _at_boot(node):
        title = f"{what} brings swap back at the next boot, and the kubelet will not start"
        yield Finding(title, (evidence, at), severity=Severity.WARNING)


def _at_boot(node: Node) -> Iterator[tuple[str, Evidence]]:
    for line in fstab(node):
        if line.kind == "swap" and "noauto" not in line.options:
            yield line.evidence.path, line.evidence
    for entry in node.capture.matching(r"/etc/systemd/system/[^/]+\.swap"):
        if entry.target != "/dev/null":
            yield entry.path, Evidence(entry.path)
