"""Reads a member's data directory, or a copy of one: the db, the log, and how far the one is behind the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drtool.core.errors import NotFound, Unsound
from snapshots import mvcc, wal
from snapshots.bolt import Damaged
from snapshots.mvcc import Keyspace
from snapshots.wal import Entry, Log


@dataclass(frozen=True, slots=True)
class MemberDir:
    """An open directory. `consistent_index` is the last entry of `log` that the db has seen."""

    directory: Path
    db: Path
    keyspace: Keyspace
    log: Log
    consistent_index: int

    @property
    def commit(self) -> int:
        """The newest entry that a majority is known to have."""
        return max(self.log.state.commit, self.consistent_index)

    @property
    def last(self) -> tuple[int, int]:
        """(term, index) of the last entry: of several members the one with the highest has all that was committed."""
        entry = self.log.last
        known = [(mark.term, mark.index) for mark in self.log.marks]
        return max([(entry.term, entry.index)] if entry else known, default=(0, 0))

    def missing(self, committed_only: bool = False) -> tuple[Entry, ...]:
        """The entries that the db has not seen. Raises Unsound where the log begins too late for it."""
        limit = self.commit if committed_only else self.last[1]
        found = tuple(entry for entry in self.log.entries if self.consistent_index < entry.index <= limit)
        if found and found[0].index != self.consistent_index + 1:
            raise Unsound(
                f"{self.directory}: the db has seen entry {self.consistent_index}, and the log begins at "
                f"{found[0].index}: what lies between is gone",
                "use another member's directory, or a backup",
            )
        return found


def locate(directory: Path) -> Path:
    """The directory `member`: in `directory`, or that itself. Raises NotFound where there is none."""
    for place in (directory / "member", directory):
        if (place / "snap" / "db").is_file():
            return place
    raise NotFound(f"{directory}: no member/snap/db in it", "name a member's data directory, as /var/lib/etcd")


@contextmanager
def opened(directory: Path) -> Iterator[MemberDir]:
    """Raises NotFound where this is no member's directory, Unsound where its db cannot be opened or it has no log."""
    member = locate(directory)
    db = _newest_db(member)
    with mvcc.opened(db) as keyspace:
        seen = int.from_bytes(keyspace.meta().get(b"consistent_index", b""))
        log = wal.read(member / "wal", after=seen)
        yield MemberDir(directory, db, keyspace, log, seen)


def _newest_db(member: Path) -> Path:
    """snap/db, or the one that the leader had sent and that a crash kept from taking its place (backend.go).

    A server looks for INDEX.snap.db where the newest snapshot record in the log is beyond what db has seen.
    """
    db = member / "snap" / "db"
    sent = sorted((member / "snap").glob("*.snap.db"))
    if not sent:
        return db
    try:
        with mvcc.opened(db) as keyspace:
            seen = int.from_bytes(keyspace.meta().get(b"consistent_index", b""))
    except Unsound:
        seen = 0
    marks = wal.read(member / "wal", after=1 << 63).marks
    newest = max((mark.index for mark in marks), default=0)
    wanted = member / "snap" / f"{newest:016x}.snap.db"
    return wanted if newest > seen and wanted in sent else db


def check_log(held: MemberDir, accept_damage: bool = False) -> None:
    """A torn tail is what a crash leaves and loses nothing acknowledged; raises Unsound for any other damage."""
    if accept_damage:
        return
    if not held.log.cluster_id:  # every segment begins with the member's and the cluster's id
        raise Unsound(
            f"{held.directory}: the log holds no record: entries after {held.consistent_index} cannot be read",
            "use another member's directory; --skip-hash-check restores what the db has",
        )
    if held.log.tail.kind == "corrupt":
        raise Unsound(
            f"{held.directory}: the log is corrupt: {held.log.tail}; entries after {held.last[1]} cannot be read",
            "use another member's directory; --skip-hash-check restores what stands before",
        )


def damage(held: MemberDir) -> tuple[str, bool]:
    """What keeps this directory from being restored in full, in one line, and whether its db alone is sound."""
    from snapshots.survey import survey

    sound = False
    try:
        survey(held.keyspace.bolt)
        sound = True
        check_log(held)
        held.missing()
    except (Damaged, Unsound) as wrong:
        return wrong.what, sound
    return "", sound
