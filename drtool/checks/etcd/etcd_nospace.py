"""etcd takes no more writes once its db has reached the quota.

The member that runs out raises the NOSPACE alarm, and the whole cluster refuses writes (`etcdserver: mvcc: database
space exceeded`) until space is made and the alarm disarmed, whichever member raised it; a restore keeps the alarm. A
db that is large and below its quota is well. At the quota without an alarm the next write raises it: a warning,
unless the log shows that it has come to that.

Fix: compact, defragment every member in turn, `etcdctl alarm disarm`; raise --quota-backend-bytes where the data is
needed.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import asked, said
from manifests.live import ETCD

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "etcd-probe-kills",
    "etcd-snap-ahead-of-db",
    "component-not-ready",
    "container-exited",
)
DEFAULT = 2 << 30
NEAR = 0.8
REFUSED = r"database space exceeded|(?i:alarm[: ]NOSPACE)|\"alarm\":\"NOSPACE"


def find(case: Case) -> Iterator[Finding]:
    etcd = case.node.etcd
    quota, told = _quota(case)
    state = asked(case.node)
    line = _line(case) if state is None else None
    called = {one.id: one.name for one in state.members} if state else {}
    for member, kind in state.alarms if state else ():
        if kind == "NOSPACE":
            who = called.get(member) or f"{member:x}"
            answer = Evidence(ETCD, None, f"alarm NOSPACE of {who}")
            yield Finding(f"etcd refuses writes: the NOSPACE alarm of {who} is raised", (answer, told))
            return
    try:
        db = case.database
        alarms = [alarm for alarm in db.cluster.alarms if alarm.kind == "NOSPACE"]
    except (EvidenceMissing, NotApplicable) as gap:
        if line is None:
            raise EvidenceMissing(f"{gap}; and no log says that space is exceeded") from gap
        yield Finding("etcd refuses writes: its db has reached the quota", (line, told))
        return
    logged = (line,) if line else ()
    size = db.evidence(f"{db.size} bytes of {quota or 'no'} quota")
    if alarms:
        names = {member.id: member.name for member in db.cluster.members}
        who = ", ".join(names.get(alarm.member) or f"{alarm.member:x}" for alarm in alarms)
        yield Finding(
            f"etcd refuses writes: the NOSPACE alarm of {who} is raised",
            (db.evidence(f"alarm NOSPACE of {who}"), size, told, *logged),
        )
    elif quota and db.size >= quota * NEAR and line:
        yield Finding("etcd refuses writes: its db has reached the quota", (size, told, line))
    elif quota and db.size >= quota:
        yield Finding(
            f"etcd's db ({db.size >> 20} MiB) is at its quota ({quota >> 20} MiB)",
            (size, told),
            severity=Severity.WARNING,
        )
    elif etcd.version is None and not quota:
        raise EvidenceMissing("neither a quota nor a version that has a default one")


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
    """The last line that says so, of etcd or of the API server."""
    for container in ("etcd", "kube-apiserver"):
        line = said(case.node.container_logs.get(container, ()), REFUSED)
        if line:
            return line.evidence
    return None
