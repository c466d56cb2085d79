"""Makes a member's data directory from a snapshot, as `etcdutl snapshot restore` does, for etcd 3.4 to 3.7.

One output for all lines. The db is copied and its bytes compared with the trailing hash; members, raft index and, where
asked for, the revision are then written beside the old pages (see amend). Copies of one file for several members are
the same to the byte.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from drtool.core.errors import DrtoolError, Refused, Unsound, UsageError
from drtool.core.events import Listener, Progress, silent
from snapshots import amend, bolt, datadir, fresh_datadir, member_dir, mvcc, versions
from snapshots.amend import Amendment
from snapshots.bolt import SECTOR, TRAILER_SIZE, Bolt
from snapshots.cluster import Cluster, alarms, member_json
from snapshots.cluster import read as read_cluster
from snapshots.membership import NewCluster
from snapshots.mvcc import Keyspace, Revision, encode_revision
from snapshots.replay import Replayed, replay
from snapshots.survey import survey
from snapshots.versions import Line
from snapshots.wal import SEGMENT_SIZE

Source: TypeAlias = Path | Iterable[bytes]

DEFAULT_BUMP = 1_000_000_000
"""Revisions to step over where the last live one is not known: more than any cluster writes between two backups."""
MAX_REVISION = 1 << 62
"""etcd counts them in a signed 64-bit integer, and has to go on counting from where a restore leaves it."""
COPY_CHUNK = 64 << 20


@dataclass(frozen=True, slots=True)
class Restoration:
    """What to make of a snapshot: member `name` of `cluster`.

    `bump` revisions are stepped over and (`mark_compacted`) what came before is marked compacted, so that watchers (a
    Kubernetes API server's above all) cannot mistake old for new; 0 leaves the revision as it is. `target` is the
    server line to adapt the db to, None for the one that wrote it or a newer one. `check_hash` False takes a file
    without a trailing hash, or with a wrong one, if its structure is sound, and what stands before a damage in a log.

    From a member's directory also the entries are taken that its log has and that no majority is known to have: an
    acknowledged write can be among them. `committed_only` leaves them out, as etcd's --force-new-cluster does.
    """

    cluster: NewCluster
    name: str
    bump: int = DEFAULT_BUMP
    mark_compacted: bool = True
    target: Line | None = None
    clear_alarms: bool = False
    disable_auth: bool = False
    check_hash: bool = True
    committed_only: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """What was made. `was` is the cluster that the snapshot came from; `boots` are the server lines that boot on it.

    `revision` is the newest there was, `bumped` the one that stands in the new directory. `hashed` is whether the
    trailing hash was there and held. `alarms` and `auth` are those still in force. `replayed` entries of a member's log
    were applied, of which `ignored` (by kind) could not be made part of the db.
    """

    directory: Path
    member_id: int
    cluster_id: int
    revision: int
    bumped: int
    size: int
    hashed: bool
    was: Cluster
    alarms: tuple[str, ...]
    auth: bool
    boots: tuple[Line, ...]
    replayed: int = 0
    ignored: Mapping[str, int] = field(default_factory=dict)


def restore(source: Source, target: Path, how: Restoration, listener: Listener = silent) -> Restored:
    """Builds beside `target`, flushes, renames once. `source` is a file, or a snapshot's bytes with their trailer.

    Raises Refused where `target` holds anything or no server could boot on the db, Unsound where the source is damaged,
    UsageError where the cluster and the name do not fit; then nothing is left behind.
    """
    member = how.cluster.member(how.name)
    if how.bump < 0:
        raise UsageError(f"a revision bump of {how.bump}: revisions only grow", "give 0 for none")
    with fresh_datadir.fresh(target) as building:
        db = datadir.db_path(building)
        for place in (db.parent.parent, db.parent):
            place.mkdir(0o700)
        descriptor = os.open(db, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if isinstance(source, Path) and source.is_dir():
                restored = _from_member(source, descriptor, how, target, listener)
            elif isinstance(source, Path):
                restored = _from_file(source, descriptor, how, target, listener)
            else:
                restored = _from_stream(source, db, descriptor, how, target, listener)
            listener(Progress("flush"))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        members = how.cluster.identified
        fresh_datadir.write_log(building, members, how.cluster.member_id(member), how.cluster.cluster_id)
    return restored


def _from_file(source: Path, descriptor: int, how: Restoration, target: Path, listener: Listener) -> Restored:
    with bolt.opened(source) as db:
        _refuse_live(source)
        _check_space(target, db.used + SEGMENT_SIZE)
        with ThreadPoolExecutor(1) as pool:  # the hash and the copy each have a core where there are two
            holds = pool.submit(db.trailer_holds)
            _copy(source, descriptor, db.used, listener)
            hashed = holds.result()
        _check_hash(db, how, hashed)
        return _amended(mvcc.keyspace(db), descriptor, how, target, bool(hashed))


def _from_stream(
    source: Iterable[bytes], path: Path, descriptor: int, how: Restoration, target: Path, listener: Listener
) -> Restored:
    digest, held, size = hashlib.sha256(), b"", 0
    for chunk in source:
        amend.pwrite(descriptor, chunk, size)
        size += len(chunk)
        held += chunk
        digest.update(held[:-TRAILER_SIZE])
        held = held[-TRAILER_SIZE:]
        listener(Progress("copy", size))
    hashed = digest.digest() == held if size % SECTOR == TRAILER_SIZE else False if bolt.cut(size) else None
    with bolt.opened(path) as db:
        _check_hash(db, how, hashed)
        restored = _amended(mvcc.keyspace(db), descriptor, how, target, bool(hashed))
    os.ftruncate(descriptor, restored.size)
    return restored


def _from_member(source: Path, descriptor: int, how: Restoration, target: Path, listener: Listener) -> Restored:
    """A stopped member's directory: its db, and what its log has beyond it, so that nothing acknowledged is lost."""
    with member_dir.opened(source) as held:
        _refuse_live(held.db)
        db = held.keyspace.bolt
        _check_space(target, db.used + SEGMENT_SIZE)
        _copy(held.db, descriptor, db.used, listener)
        survey(db, listener)
        member_dir.check_log(held, accept_damage=not how.check_hash)
        replayed = replay(held.keyspace, held.missing(how.committed_only))
        return _amended(held.keyspace, descriptor, how, target, False, replayed)


def _copy(source: Path, descriptor: int, size: int, listener: Listener) -> None:
    """Inside the kernel where it can, shared blocks and all where the file system can."""
    with source.open("rb") as file:
        done = 0
        while done < size:
            wanted = min(COPY_CHUNK, size - done)
            try:
                copied = os.copy_file_range(file.fileno(), descriptor, wanted, done, done)
            except OSError:  # another kind of file system
                data = os.pread(file.fileno(), min(wanted, bolt.CHUNK), done)
                amend.pwrite(descriptor, data, done)
                copied = len(data)
            if copied == 0:
                raise Unsound(f"{source} became shorter while it was copied", "copy it first, or take a snapshot")
            done += copied
            listener(Progress("copy", done, size))


def _amended(
    keyspace: Keyspace, descriptor: int, how: Restoration, target: Path, hashed: bool, replayed: Replayed | None = None
) -> Restored:
    db = keyspace.bolt
    if b"key" not in keyspace.buckets or b"meta" not in keyspace.buckets:
        raise Unsound(f"{db.name}: a bbolt file, but not etcd's: it has no bucket key or meta", "name an etcd snapshot")
    was = read_cluster(keyspace)
    before = replayed.amendment if replayed else Amendment()
    last = replayed.revision if replayed else max(keyspace.last().main, keyspace.compacted())
    if how.bump and last + how.bump > MAX_REVISION:
        raise UsageError(
            f"a revision bump of {how.bump}: etcd cannot count so far", "give a smaller one, or 0 for none"
        )
    amendment = amendment_for(Overlaid(keyspace, before), how, last)
    size = amend.apply(descriptor, db, amendment)
    return Restored(
        directory=target,
        member_id=how.cluster.member_id(how.cluster.member(how.name)),
        cluster_id=how.cluster.cluster_id,
        revision=last,
        bumped=last + how.bump,
        size=size,
        hashed=hashed,
        was=was,
        alarms=tuple(sorted({alarm.kind for alarm in alarms(Overlaid(keyspace, amendment))})),
        auth=was.auth and not how.disable_auth,
        boots=versions.bootable(amendment.replaced[b"meta"], amendment.replaced[b"cluster"]),
        replayed=replayed.applied if replayed else 0,
        ignored=replayed.ignored if replayed else {},
    )


@dataclass(frozen=True, slots=True)
class Overlaid:
    """The small buckets of a db as an amendment makes them (cluster.Records)."""

    keyspace: Keyspace
    amendment: Amendment

    def small(self, name: bytes) -> dict[bytes, bytes]:
        replaced = self.amendment.replaced.get(name)
        return self.keyspace.small(name) if replaced is None else dict(replaced)

    def place(self, name: bytes) -> str:
        return self.keyspace.place(name)


def amendment_for(held: Overlaid, how: Restoration, last: int) -> Amendment:
    """What a restore changes in the db (etcdutl/v3/snapshot/v3_snapshot.go), on top of what a replay has changed.

    `last` is the newest revision.
    """
    meta, cluster = held.small(b"meta"), held.small(b"cluster")
    versions.check_known(meta, cluster)
    members = how.cluster.identified
    meta[b"consistent_index"] = len(members).to_bytes(8)
    meta[b"term"] = fresh_datadir.TERM.to_bytes(8)
    voters = ",".join(str(one.id) for one in members)
    meta.setdefault(b"confState", f'{{"voters":[{voters}],"auto_leave":false}}'.encode())
    appended = list(held.amendment.appended.get(b"key", ()))
    if how.bump:
        revision = encode_revision(Revision(last + how.bump))
        appended.append((revision, b""))
        if how.mark_compacted:
            meta[b"scheduledCompactRev"] = revision
    if how.target is not None:
        meta, cluster = versions.adapted(meta, cluster, how.target)
    replaced: dict[bytes, Mapping[bytes, bytes]] = {
        **held.amendment.replaced,
        b"meta": meta,
        b"cluster": cluster,
        b"members": {f"{one.id:x}".encode(): member_json(one) for one in members},
        b"members_removed": {},
    }
    if how.clear_alarms:
        replaced[b"alarm"] = {}
    if how.disable_auth:
        replaced[b"auth"] = {**held.small(b"auth"), b"authEnabled": b"\0"}
    return Amendment(replaced, {b"key": appended})


def _check_hash(db: Bolt, how: Restoration, hashed: bool | None) -> None:
    if how.check_hash and hashed is None:
        raise Refused(
            f"{db.name} has no trailing hash: no snapshot but a copied db, perhaps of a running etcd",
            "give --skip-hash-check to restore it if its structure is sound",
        )
    if how.check_hash and not hashed:
        raise Unsound(
            f"{db.name}: the trailing hash is not that of the file: it was changed or cut after it was saved",
            "use another copy or an older backup; --skip-hash-check restores it all the same if its structure is sound",
        )
    if not hashed:
        survey(db)


def _refuse_live(source: Path) -> None:
    if datadir.in_use(source):
        raise Refused(
            f"{source} is open in a running etcd, so that what is copied from it is no moment's state",
            "take a snapshot of that server (drtool backup), or stop it first",
        )


def _check_space(target: Path, needed: int) -> None:
    place = target if target.is_dir() else target.parent
    info = os.statvfs(place)
    free = info.f_bavail * info.f_frsize
    if free < needed:
        raise DrtoolError(f"{place} has {free} bytes free, and {needed} are needed", "free some, or name another place")
