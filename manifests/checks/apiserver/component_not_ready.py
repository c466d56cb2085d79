"""Each program of the control plane must say that it is ready.

/livez and /readyz name the part that fails (etcd, informer-sync, poststarthook/...); etcd's /health likewise. This is
what the node answers now, and the consequence of whatever the checks below it found.

Fix: follow the failing part; with nothing else found, the program's own log has the reason.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.installed import layer_of
from manifests.messages import CONTROL_PLANE
from manifests.node import Node

SEVERITY = Severity.CRITICAL
SYMPTOM = True


def find(node: Node) -> Iterator[Finding]:
    asked = [probe for probe in node.probes if probe.component in CONTROL_PLANE and probe.kind == "http"]
    if not asked:
        raise EvidenceMissing("no program of the control plane was asked")
    for probe in asked:
        if not probe.ok:
            parts = f": {', '.join(probe.failing)}" if probe.failing else f": {probe.error}" if probe.error else ""
            yield Finding(f"{probe.component} is not ready{parts}", (probe.evidence,), layer=layer_of(probe.component))
