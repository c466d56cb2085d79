"""Every record of a member's write-ahead log must carry the checksum that follows from those before it.

etcd repairs a write that was never finished at the very end (zeros, or a record that is cut), and exits on anything
else: `walpb: crc mismatch`, `max entry size limit exceeded` (a segment cut by a full disk or by a careless copy). A
log that ends before what the db has seen lost entries: etcd starts and never gets ready. Zeros after the last record
are the preallocated rest of a healthy segment, and a copy of a running member may end in half a record.

Fix: with other members healthy, remove this one, move its data aside and add it again. A single member: restore the
newest backup, or, with a copy of the directory in hand, the db itself (`drtool restore var/lib/etcd/member/snap/db`).
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import last_words
from snapshots.walcheck import LogFacts

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
REFUSED = r"walpb: crc mismatch|max entry size limit exceeded|read wal error|failed to repair WAL|wal: crc mismatch"
REPAIRED = r'"msg":"repaired WAL"|"msg":"repaired"'
LAG = 32
"""Entries by which a log may end before the db's index where both were copied while etcd ran."""


def find(case: Case) -> Iterator[Finding]:
    line = _refused(case)
    try:
        data = case.data
        log = data.log
        damage = _damage(log, _seen(case), line is not None)
    except (EvidenceMissing, NotApplicable):
        if line is None:
            raise
        yield Finding("etcd cannot read its write-ahead log", (line,))
        return
    place = Evidence(f"{data.wal_path}/{log.segment}", None, f"byte {log.offset}: {log.fault or 'the log ends'}")
    if damage:
        said_so = (line,) if line else ()
        yield Finding(f"etcd's write-ahead log is damaged: {damage}", (place, *_index(case, log), *said_so))
    elif line is not None:
        yield Finding("etcd cannot read its write-ahead log, as it says itself", (line, place))


def _damage(log: LogFacts, seen: int, logged: bool) -> str:
    """What is wrong, "" where etcd repairs it by itself or where a copy of a running member looks like it."""
    if not log.segments:
        return ""
    if log.fault and not log.torn:
        return log.fault
    if not log.last and not log.mark and not log.member_id:
        return "it holds no record"
    lost = seen - log.last
    if lost > (0 if log.cut or logged else LAG) and log.last:
        return f"it ends at index {log.last}, and the db has seen {seen}"
    return ""


def _seen(case: Case) -> int:
    """The db's index; 0 where it cannot be read, or where a running etcd moves it on meanwhile."""
    try:
        return 0 if case.database.busy else case.database.cluster.consistent_index
    except (EvidenceMissing, NotApplicable):
        return 0


def _index(case: Case, log: LogFacts) -> tuple[Evidence, ...]:
    seen = _seen(case)
    return (case.database.evidence(f"consistent index {seen}"),) if seen > log.last else ()


def _refused(case: Case) -> Evidence | None:
    """etcd's own last words on it; 3.6 and newer also tell of what they have repaired."""
    return None if last_words(case.node, REPAIRED) else last_words(case.node, REFUSED)
