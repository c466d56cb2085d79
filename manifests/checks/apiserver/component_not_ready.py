"""Each program of the control plane must say that it is ready.

/livez and /readyz name the part that fails (etcd, informer-sync, poststarthook/...); etcd's /health likewise. This is
what the node answers now, and the consequence of whatever the checks below it found. A program that was started within
the last minutes and answers may still be waiting for its caches: a warning.

Fix: follow the failing part; with nothing else found, the program's own log has the reason.
"""

from collections.abc import Iterator
from datetime import timedelta

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from manifests.installed import layer_of
from manifests.live import ProbeAnswer
from manifests.messages import CONTROL_PLANE
from manifests.node import Node

SEVERITY = Severity.CRITICAL
SYMPTOM = True
STARTUP = timedelta(seconds=240)
LOOPING = 5  # restarts after which a new start means nothing


def find(node: Node) -> Iterator[Finding]:
    asked = [probe for probe in node.probes if probe.component in CONTROL_PLANE and probe.kind == "http"]
    if not asked:
        raise EvidenceMissing("no program of the control plane was asked")
    for probe in asked:
        if not probe.ok:
            parts = f": {', '.join(probe.failing)}" if probe.failing else f": {probe.error}" if probe.error else ""
            young = _started_lately(node, probe)
            title = f"{probe.component} is not ready{parts}" + ("; it has just been started" if young else "")
            yield Finding(title, (probe.evidence,), Severity.WARNING if young else None, layer_of(probe.component))


def _started_lately(node: Node, probe: ProbeAnswer) -> bool:
    """Within what kubeadm's startup probes allow, and not after many restarts: a loop is always young."""
    try:
        running = [c for c in node.containers if c.name == probe.component and c.state == "running"]
    except (EvidenceMissing, NotApplicable):
        return False
    if not running or probe.status is None or running[-1].attempt >= LOOPING:
        return False
    started = running[-1].created
    return started is not None and node.at - started < STARTUP
