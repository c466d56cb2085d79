"""Swap comes back with the next boot: `swapoff -a` does not outlive it.

/etc/fstab and systemd's .swap units count. The kubelet that ran well then does not start.

Fix: take the line out of /etc/fstab, mask the unit.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.host.mounts import fstab
from manifests.node import Node

SEVERITY = Severity.WARNING


def find(node: Node) -> Iterator[Finding]:
    fails, _ = node.kubelet.setting("fail-swap-on", "failSwapOn", default=True)
    if str(fails).lower() == "false":
        return
    node.text("/etc/fstab")
    fix = Fix("drtool preflight --fix", "comments the line out")
    for line in fstab(node):
        if line.kind == "swap" and "noauto" not in line.options:
            yield Finding("/etc/fstab brings swap back at the next boot", (line.evidence,), fix=fix)
    for entry in node.capture.matching(r"/etc/systemd/system/[^/]+\.swap"):
        if entry.target != "/dev/null":
            yield Finding(f"{entry.path} brings swap back at the next boot", (Evidence(entry.path),))
