"""The kubelet must not kill an etcd that only needs time, or space.

`/health` without `exclude=NOSPACE` answers 503 while the NOSPACE alarm is raised: the kubelet then kills the member
that has to be compacted, over and over. A probe that gives up after seconds kills a member that replays a long log.
kubeadm's `/health?exclude=NOSPACE&serializable=true`, and since 1.32 `/livez` and `/readyz`, do neither.

Fix: put kubeadm's own probes back; take the liveness probe out while the member is being repaired.
"""

import re
from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.pod import Probe

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
KILLED = re.compile(
    r"(?i)container \"?etcd\"? failed liveness probe|Killing unwanted.*etcd|failed liveness probe.*etcd"
)
FAILED = re.compile(r"(?i)Liveness probe failed.*|probe failed.*statuscode: 503")
LEAST = 15  # seconds of failing probes before the kubelet kills; kubeadm's own takes 80


def find(case: Case) -> Iterator[Finding]:
    etcd = case.node.etcd
    killed = _killed(case)
    for probe in etcd.container.probes:
        if probe.kind != "livenessProbe":
            continue
        path, _, query = probe.path.partition("?")
        if path == "/health" and "NOSPACE" not in query:
            alarms = _alarms(case)
            yield Finding(
                "etcd's liveness probe fails while an alarm is raised, and the kubelet kills it",
                (etcd.pod.evidence(*_place(probe, "path", etcd.container.position)), *alarms, *killed),
                severity=None if alarms or killed else Severity.WARNING,
            )
        seconds = _patience(probe)
        if seconds < LEAST:
            yield Finding(
                f"etcd's liveness probe gives up after {seconds} seconds",
                (probe.evidence, *killed),
                severity=None if killed else Severity.WARNING,
            )


def _place(probe: Probe, key: str, position: tuple[str | int, ...]) -> tuple[str | int, ...]:
    return (*position, probe.kind, probe.action, key)


def _patience(probe: Probe) -> int:
    """Seconds from the first failure to the kill: the API's defaults are a period of 10, a threshold of 3."""
    settings = probe.settings
    period, threshold = settings.get("periodSeconds", 10), settings.get("failureThreshold", 3)
    return period * threshold if isinstance(period, int) and isinstance(threshold, int) else LEAST


def _alarms(case: Case) -> tuple[Evidence, ...]:
    try:
        database = case.database
        return tuple(database.evidence(f"alarm {alarm.kind} of {alarm.member:x}") for alarm in database.cluster.alarms)
    except (EvidenceMissing, NotApplicable):
        return ()


def _killed(case: Case) -> tuple[Evidence, ...]:
    lines = [line for line in case.node.journal("kubelet") if "etcd" in line.text]
    return tuple(line.evidence for line in lines if KILLED.search(line.text) or FAILED.search(line.text))[-1:]
