"""Swap is on: the kubelet does not start with it, unless it is told to (failSwapOn: false).

kubeadm only warns. Even where the kubelet tolerates swap, workloads use none (NoSwap) unless memorySwap says
LimitedSwap.

Fix: `swapoff -a`, or failSwapOn: false in the kubelet's configuration.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Fix, Severity
from manifests.node import Node

SEVERITY = Severity.ERROR
KUBEADM = ("Swap",)
SWAPS = "/proc/swaps"


def find(node: Node) -> Iterator[Finding]:
    fails, _ = node.kubelet.setting("fail-swap-on", "failSwapOn", default=True)
    node.text(SWAPS)
    for match, evidence in node.find(SWAPS, r"^(/\S+)\s+\w+\s+\d+"):
        tolerated = str(fails).lower() == "false"
        yield Finding(
            f"Swap is on: {match[1]}",
            (evidence,),
            severity=Severity.INFO if tolerated else None,
            fix=None if tolerated else Fix("drtool preflight --fix", f"swapoff {match[1]}"),
        )
