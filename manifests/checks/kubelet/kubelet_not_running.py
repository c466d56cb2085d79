"""The kubelet's service must be active.

Without it no static Pod is started or restarted, and after some forty seconds the node is NotReady; containers that run
go on. Why it stopped is said by the checks of its configuration, flags and host, and by its journal.

Fix: `systemctl status kubelet` and `journalctl -u kubelet`; then `systemctl enable --now kubelet`.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.messages import said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
SYMPTOM = True
EXPLAINS = ("container-exited", "component-not-ready")


def find(node: Node) -> Iterator[Finding]:
    unit = next((unit for unit in node.units if unit.name in {"kubelet.service", "kubelet"}), None)
    if unit is None:
        raise EvidenceMissing("systemd was not asked for kubelet.service")
    if unit.active != "active":
        last = list(said(node, r"command failed|^E\d{4}|^F\d{4}|[Ff]ailed", "kubelet"))[-1:]
        yield Finding(
            f"The kubelet does not run: its unit is {unit.active}", (unit.evidence, *(w.evidence for w in last))
        )
