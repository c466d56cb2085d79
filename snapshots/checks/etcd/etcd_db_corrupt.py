"""etcd's db must be sound: both halves of its header, every page, every bucket.

bbolt keeps no checksum of its pages, so what is seen is a contradiction: a page that calls itself another, keys out
of order, a file shorter than it says. etcd panics, dies of SIGBUS, or serves what is left. A db of a running member
changes under the reader, and a copy of it taken with cp may be torn: then the copy is damaged, not the member.

Fix: with other members healthy, remove this one, move its data aside and add it again; else restore a backup. With an
intact write-ahead log that goes back far enough, the data can be rebuilt from it.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from snapshots.facts import Database

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "etcd-snap-ahead-of-db",
    "etcd-wal-missing",
    "etcd-membership-stale",
    "etcd-inconsistent-members",
    "container-exited",
    "component-not-ready",
)


def find(database: Database) -> Iterator[Finding]:
    if database.damage:
        if database.busy:
            raise EvidenceMissing(f"etcd is writing to {database.path}, so that it cannot be judged: {database.damage}")
        yield Finding(
            f"etcd's db is damaged: {database.damage}",
            (database.evidence(f"{database.size} bytes; a copy taken while etcd ran may be torn"),),
        )
    elif database.trailer is False:
        yield Finding(
            "the snapshot's checksum does not hold: it was changed or cut after it was saved",
            (database.evidence("sha256 at the end"),),
        )
    elif not database.checked:
        raise EvidenceMissing(
            f"{database.path}: {database.used >> 20} MiB in use are too many to go through here; "
            "`drtool status` checks every page"
        )
