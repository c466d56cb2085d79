"""etcd's db should hold little more than the objects that are alive.

Every change keeps its old revision until a compaction; kube-apiserver compacts every five minutes. A deep history
means that it does not (an etcd shared with something else, compaction switched off); a file that is mostly empty
means that defragmentation is overdue: the quota counts the file, not what is in it.

Fix: compact to a recent revision; `etcdctl defrag` one member after the other, the leader last.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from snapshots.facts import Database

SEVERITY = Severity.WARNING
DEPTH, LEAST = 20, 20_000  # revisions per key; revisions in all, below which nothing is worth a word
LARGE = 256 << 20
EMPTY = 0.5


def find(database: Database) -> Iterator[Finding]:
    contents = database.contents
    depth = contents.revisions / max(contents.keys, 1)
    if contents.revisions >= LEAST and depth >= DEPTH:
        yield Finding(
            f"etcd's db keeps {depth:.0f} revisions of each key: compaction is overdue",
            (database.evidence(f"{contents.revisions} revisions of {contents.keys} keys"),),
        )
    if database.free is None:
        raise EvidenceMissing(f"{database.path}: too large to count what is free in it")
    unused = database.size - database.used + database.free
    if database.size >= LARGE and unused > database.size * EMPTY:
        yield Finding(
            f"{unused >> 20} of {database.size >> 20} MiB of etcd's db hold nothing: defragmentation is overdue",
            (database.evidence(f"{database.free} of {database.used} bytes free"),),
        )
