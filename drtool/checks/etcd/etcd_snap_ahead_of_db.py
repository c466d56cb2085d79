"""etcd's db must have seen everything up to the member's newest raft snapshot.

After a power cut on a disk that lies about syncing, or after the db was replaced by an older copy, the newest .snap
file is ahead of the db's consistent index. Without the received db of that index (INDEX.snap.db) etcd panics: `failed
to recover v3 backend from snapshot`, `failed to find database snapshot file`, `database file ... does not match with
snapshot`.

Fix: with other members healthy, remove this one, move its data aside and add it again. A single member: restore the
newest backup, or, with a copy of the directory in hand, the db itself (`drtool restore var/lib/etcd/member/snap/db`).
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import last_words
from snapshots.facts import DataDirectory

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "etcd-wal-corrupt",
    "etcd-inconsistent-members",
    "etcd-membership-stale",
    "etcd-quorum-impossible",
    "container-exited",
    "component-not-ready",
)
REFUSED = (
    r"failed to recover v3 backend from snapshot|failed to find database snapshot file|does not match with snapshot"
)


def find(case: Case) -> Iterator[Finding]:
    words = last_words(case.node, REFUSED)
    if words is not None:
        yield Finding("etcd's newest raft snapshot is ahead of its db, as it says itself", (words,))
    data = case.data
    index, said = _seen(data)
    files = {snap: f"member/snap/{term:016x}-{snap:016x}.snap" for term, snap in data.snaps}
    newest = max(files, default=0)
    if newest <= index:
        newest = max(newest, data.log.mark)
    if newest > index and newest not in data.snap_dbs:
        name = files.get(newest)
        place = Evidence(f"{data.path}/{name}" if name else data.wal_path, None, f"snapshot at index {newest}")
        yield Finding(
            f"etcd's newest raft snapshot is of index {newest}, and its db has seen {index or 'nothing'}", (place, said)
        )


def _seen(data: DataDirectory) -> tuple[int, Evidence]:
    """The db's consistent index; 0 where a member has no db at all."""
    try:
        database = data.database
    except EvidenceMissing:
        if not data.member:
            raise
        return 0, Evidence(f"{data.path}/member/snap/db", None, "absent")
    index = database.cluster.consistent_index
    return index, database.evidence(f"consistent index {index}")
