"""etcd takes no more writes once its db has reached the quota.

The member that runs out raises the NOSPACE alarm, and the whole cluster refuses writes (`etcdserver: mvcc: database
space exceeded`) until space is made and the alarm disarmed, whichever member raised it; a restore keeps the alarm. A
db that is large and below its quota is well. At the quota without an alarm the next write raises it: a warning,
unless the log shows that it has come to that.

Fix: compact, defragment every member in turn, `etcdctl alarm disarm`; raise --quota-backend-bytes where the data is
needed.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import asked, said
from manifests.live import ETCD
from snapshots.facts import Database

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "etcd-probe-kills",
    "etcd-snap-ahead-of-db",
    "component-not-ready",
    "container-exited",
)
DEFAULT = 2 << 30
REFUSED = r"database space exceeded|(?i:alarm[: ]NOSPACE)|\"alarm\":\"NOSPACE"
DISARMED = "alarm disarmed"
UNHEALTHY = re.compile(r"(?i)probe failed.*statuscode: 503")
NEARLY = 0.95
"""Of the quota: the db grows in steps, and a write that would not fit is refused before."""
LATELY = 20
"""Lines at the end of a log that count as what a program says now."""
STALE = timedelta(minutes=10)


def find(case: Case) -> Iterator[Finding]:
    quota, told = _quota(case)
    state = asked(case.node)
    if state is not None:
        names = {one.id: one.name for one in state.members}
        raised = [names.get(member) or f"{member:x}" for member, kind in state.alarms if kind == "NOSPACE"]
        if raised:
            yield _alarm(raised, (Evidence(ETCD, None, f"alarm NOSPACE of {', '.join(raised)}"), told))
            return
    line = _line(case) if state is None else None
    try:
        db = case.database
        yield from _weighed(db, quota, told, line or _unhealthy(case, db, quota))
    except (EvidenceMissing, NotApplicable) as gap:
        if line is None:
            raise EvidenceMissing(f"{gap}; and no log says that space is exceeded") from gap
        yield Finding("etcd refuses writes: its db has reached the quota", (line, told))


def _weighed(db: Database, quota: int, told: Evidence, line: Evidence | None) -> Iterator[Finding]:
    """The db's own alarm first, then what etcd says now, then the size."""
    size = db.evidence(f"{db.size} bytes of {quota or 'no'} quota")
    names = {member.id: member.name for member in db.cluster.members}
    raised = [names.get(a.member) or f"{a.member:x}" for a in db.cluster.alarms if a.kind == "NOSPACE"]
    if raised:
        alarm = db.evidence(f"alarm NOSPACE of {', '.join(raised)}")
        yield _alarm(raised, (alarm, size, told, *((line,) if line else ())))
    elif line:
        yield Finding("etcd refuses writes: its db has reached the quota", (line, size, told))
    elif quota and db.size >= quota:
        title = f"etcd's db ({db.size >> 20} MiB) is at its quota ({quota >> 20} MiB)"
        yield Finding(title, (size, told), severity=Severity.WARNING)


def _alarm(raised: list[str], evidence: tuple[Evidence, ...]) -> Finding:
    return Finding(f"etcd refuses writes: the NOSPACE alarm of {', '.join(raised)} is raised", evidence)


def _quota(case: Case) -> tuple[int, Evidence]:
    """Bytes; 0 where it is switched off. The default of every line is 2 GiB."""
    etcd = case.node.etcd
    if not etcd.has("quota-backend-bytes"):
        return DEFAULT, etcd.image_evidence
    flag = etcd.flag("quota-backend-bytes")
    try:
        given = int(flag.value)
    except ValueError:
        return DEFAULT, flag.evidence
    return (max(given, 0) or (DEFAULT if given == 0 else 0)), flag.evidence


def _line(case: Case) -> Evidence | None:
    """The line that says so now, of etcd or of the API server; None where it is an old story.

    3.5 logs that an alarm was disarmed; 3.6 and newer do not, so there a line counts only while nothing much later is
    in the logs.
    """
    logs = case.node.container_logs
    newest = max((line.time for lines in logs.values() for line in lines[-1:]), default="")
    for container in ("etcd", "kube-apiserver"):
        lines = logs.get(container, ())[-LATELY:]
        disarmed = max((place for place, line in enumerate(lines) if DISARMED in line.text), default=-1)
        found = said(lines[disarmed + 1 :], REFUSED)
        if found and not _older(found.time, newest):
            return found.evidence
    return None


def _unhealthy(case: Case, db: Database, quota: int) -> Evidence | None:
    """At the quota, /health answers 503 for one reason: the alarm (etcd counts alarms as ill health there)."""
    if not quota or db.size < quota * NEARLY:
        return None
    lines = [line for line in case.node.journal("kubelet") if "etcd" in line.text and UNHEALTHY.search(line.text)]
    return lines[-1].evidence if lines else None


def _older(time: str, newest: str) -> bool:
    try:
        return datetime.fromisoformat(newest) - datetime.fromisoformat(time) > STALE
    except (ValueError, TypeError):
        return False
