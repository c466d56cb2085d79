"""A member's write-ahead log must be whole: etcd does not serve from its db alone.

Without any segment it takes the directory for a new member's, and never gets ready over the old db. With one missing
in the middle it exits: `file sequence numbers ... do not increase continuously`; the oldest may be gone once a
snapshot covers what was in it.

Fix: put the log back from where it was moved to. Else: with other members healthy, remove this one, move its data
aside and add it again; a single member is restored from its newest backup, or from the db itself.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")


def find(case: Case) -> Iterator[Finding]:
    data = case.data
    if not data.member:
        raise NotApplicable(f"{data.path} holds no member")
    database = data.database
    try:
        log = data.log
        segments = log.segments
    except EvidenceMissing:
        segments = ()
    if not segments:
        if database.size:
            yield Finding(
                "etcd's write-ahead log is gone, and its db is still there",
                (Evidence(data.wal_path, None, "no segment in it"), database.evidence(f"{database.size} bytes")),
            )
        return
    if log.gap:
        yield Finding(
            f"segment {log.gap} of etcd's write-ahead log is missing",
            (Evidence(data.wal_path, None, f"{segments[0]} to {segments[-1]}"),),
        )
    elif log.first > (seen := database.cluster.consistent_index) + 1:
        yield Finding(
            f"etcd's write-ahead log begins after index {log.first}, and its db has seen {seen} only",
            (Evidence(f"{data.wal_path}/{segments[0]}"), database.evidence(f"consistent index {seen}")),
        )
