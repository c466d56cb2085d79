"""The container runtime must answer on its socket.

Without it the kubelet can start, stop and see nothing; what already runs goes on.

Fix: `systemctl status containerd` (or crio) and its journal; then start it.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from manifests.live import ProbeAnswer
from manifests.node import Node

SEVERITY = Severity.CRITICAL
SYMPTOM = True
EXPLAINS = ("container-exited", "component-not-ready", "kubelet-not-running")
UNITS = ("containerd.service", "crio.service", "cri-docker.service")


def find(node: Node) -> Iterator[Finding]:
    asked = False
    for probe in _probes(node):
        if probe.component == "container-runtime":
            asked = True
            if not probe.ok:
                yield Finding(f"The container runtime does not answer: {probe.error or probe.url}", (probe.evidence,))
    if asked:
        return
    states = [unit for unit in node.units if unit.name in UNITS]
    if not states:
        raise EvidenceMissing("neither the runtime's socket nor systemd was asked")
    if not any(unit.active == "active" for unit in states):
        evidence = tuple(unit.evidence for unit in states)
        yield Finding("No container runtime runs on this host", evidence)


def _probes(node: Node) -> tuple[ProbeAnswer, ...]:
    try:
        return node.probes
    except (NotApplicable, EvidenceMissing):
        return ()
