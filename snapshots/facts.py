"""Etcd's data as a node has it on its disk, read once: what the checks weigh. Never writes, and bounds its work.

A db of up to `DEEP` bytes in use is checked page by page and read whole; of a larger one the small buckets and the
newest revisions are read, and what was left out is said. A running etcd holds flock(2) on its db (bbolt): such a file
changes under the reader, so damage seen in it proves nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.errors import DrtoolError, NotFound, Unsound
from drtool.core.report import Evidence
from drtool.host.root import Root
from snapshots import bolt as bbolt
from snapshots import cluster as clusters
from snapshots import contents, v2store, walcheck
from snapshots.bolt import Bolt, Damaged
from snapshots.cluster import Cluster
from snapshots.contents import Contents
from snapshots.mvcc import keyspace
from snapshots.survey import survey
from snapshots.walcheck import LogFacts

DEEP = 24 << 20
NEWEST = 8 << 20
SNAP = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})\.snap")
SNAP_DB = re.compile(r"([0-9a-f]{16})\.snap\.db")


@dataclass(frozen=True, slots=True)
class Database:
    """One db or snapshot file. `size` of the file, `used` up to its high water mark, in bytes.

    `damage` is "" where nothing was found; `checked` is False where the pages were not gone through (too many).
    `busy` is True where a running etcd holds the file. `free` is the number of bytes that hold nothing, None unless
    checked. `trailer` is whether a snapshot's sha256 holds, None where there is none or it was not computed.
    """

    path: str
    size: int
    used: int = 0
    busy: bool = False
    checked: bool = False
    damage: str = ""
    free: int | None = None
    revision: int = 0
    compacted: int = -1
    trailer: bool | None = None
    _cluster: Cluster | None = None
    _contents: Contents | None = field(default=None, repr=False)

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            raise EvidenceMissing(f"{self.path} cannot be read: {self.damage}")
        return self._cluster

    @property
    def contents(self) -> Contents:
        if self._contents is None:
            raise EvidenceMissing(f"{self.path} cannot be read: {self.damage}")
        return self._contents

    def evidence(self, text: str) -> Evidence:
        return Evidence(self.path, None, text)


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """A member's data. `snaps` are the (term, index) of its .snap files, `snap_dbs` the indices of received ones.

    `v2` are keys of the v2 store in the newest .snap that are not etcd's own, None where there is no such file.
    `digest` is a revision and a hash of all that was alive at it, where members were compared.
    Properties raise EvidenceMissing with the reason where there is nothing to read.
    """

    path: str
    present: bool
    member: bool = False
    names: tuple[str, ...] = ()
    snaps: tuple[tuple[int, int], ...] = ()
    snap_dbs: tuple[int, ...] = ()
    v2: tuple[str, ...] | None = None
    broken: tuple[str, ...] = ()
    wal_path: str = ""
    problem: str = ""
    log_problem: str = ""
    digest: tuple[int, str] | None = None
    _database: Database | None = None
    _log: LogFacts | None = None

    @property
    def database(self) -> Database:
        if self._database is None:
            raise EvidenceMissing(self.problem or f"no db in {self.path}")
        return self._database

    @property
    def log(self) -> LogFacts:
        """NotApplicable where there is no member at all."""
        if self._log is None:
            if self.present and not self.member:
                raise NotApplicable(f"{self.path} holds no member")
            raise EvidenceMissing(self.log_problem or f"no WAL in {self.path}")
        return self._log


def look(root: Root, data_dir: str, wal_dir: str = "", prefix: str = "/registry", deep: int = DEEP) -> DataDirectory:
    """The data directory at the node's own path `data_dir`. Never raises for what is on the disk.

    The db is read last: a running member commits it before it writes a snapshot of that index.
    """
    names = root.names(data_dir)
    snap_path = f"{data_dir}/member/snap"
    wal_path = wal_dir or f"{data_dir}/member/wal"
    log, log_problem = _log(root, wal_path)
    snap_names = root.names(snap_path)
    database, problem = _database(root, f"{snap_path}/db", prefix, deep)
    snaps = sorted((int(m[1], 16), int(m[2], 16)) for name in snap_names if (m := SNAP.fullmatch(name)))
    return DataDirectory(
        path=data_dir,
        present=root.read(data_dir, 0).kind not in {"absent", "dangling", "unreadable"},
        member="member" in names and bool(snap_names or root.names(wal_path)),
        names=names,
        snaps=tuple(snaps),
        snap_dbs=tuple(sorted(int(m[1], 16) for name in snap_names if (m := SNAP_DB.fullmatch(name)))),
        v2=_v2(root, snap_path, snaps),
        broken=tuple(name for name in (*snap_names, *root.names(wal_path)) if name.endswith(".broken")),
        wal_path=wal_path,
        problem=problem,
        log_problem=log_problem,
        _database=database,
        _log=log,
    )


def compared(roots: Sequence[Root], stored: Sequence[DataDirectory | None]) -> tuple[DataDirectory | None, ...]:
    """With several members: the digest of each at the newest revision that all of them have."""
    readable = [one._database for one in stored if one and one._database and _comparable(one._database)]
    if len(readable) < 2:
        return tuple(stored)
    revision = min(database.revision for database in readable)
    return tuple(
        replace(one, digest=_digest(root, one._database, revision)) if one and one._database in readable else one
        for root, one in zip(roots, stored, strict=True)
    )


def _comparable(database: Database) -> bool:
    return database.checked and not database.damage and not database.busy and database.revision > 0


def _digest(root: Root, database: Database | None, revision: int) -> tuple[int, str] | None:
    """None where the revision is compacted; keys, revisions and values count."""
    if database is None:
        return None
    total = hashlib.sha256()
    try:
        with bbolt.opened(root.locate(database.path)) as bolt:
            for kv in keyspace(bolt).index(revision).prefix():
                total.update(b"%d:%b%d %d:%b" % (len(kv.key), kv.key, kv.mod_revision, len(kv.value), kv.value))
    except (OSError, ValueError, DrtoolError):
        return None
    return revision, total.hexdigest()[:16]


def _log(root: Root, path: str) -> tuple[LogFacts | None, str]:
    try:
        return walcheck.look(root.locate(path)), ""
    except (OSError, ValueError) as wrong:
        return None, f"{path}: {os.strerror(wrong.errno) if isinstance(wrong, OSError) and wrong.errno else wrong}"


def _v2(root: Root, directory: str, snaps: list[tuple[int, int]]) -> tuple[str, ...] | None:
    if not snaps:
        return None
    term, index = max(snaps, key=lambda snap: snap[1])
    entry = root.read(f"{directory}/{term:016x}-{index:016x}.snap", v2store.LARGEST)
    return None if entry.data is None or entry.cut else v2store.foreign(entry.data)


def _database(root: Root, path: str, prefix: str, deep: int) -> tuple[Database | None, str]:
    try:
        place = root.locate(path)
        if not place.is_file():
            return None, f"{path}: not a file"
        return database(place, path, prefix, deep), ""
    except (OSError, ValueError) as wrong:
        return None, f"{path}: {os.strerror(wrong.errno) if isinstance(wrong, OSError) and wrong.errno else wrong}"


def database(
    place: Path, path: str = "", prefix: str = "/registry", deep: int = DEEP, trailer: bool = False
) -> Database:
    """The file at `place`, called `path` in findings. Raises OSError; damage is told, not raised.

    A busy file that looks damaged is read a second time: a write may have come between. With `trailer` the checksum at
    the end of a snapshot is computed, too.
    """
    path = path or str(place)
    busy = _busy(place)
    found = _read(place, path, prefix, deep, busy)
    if found.damage and busy:
        found = _read(place, path, prefix, deep, busy)
    if trailer and not found.damage:
        with bbolt.opened(place) as bolt:
            found = replace(found, trailer=bolt.trailer_holds())
    return found


def _read(place: Path, path: str, prefix: str, deep: int, busy: bool) -> Database:
    size = place.stat().st_size
    name = PurePosixPath(path).name
    try:
        with bbolt.opened(place) as bolt:
            return _facts(bolt, path, prefix, deep, busy)
    except NotFound as gone:
        raise FileNotFoundError(2, os.strerror(2), path) from gone
    except Unsound as wrong:
        return Database(path, size, busy=busy, damage=wrong.what.replace(str(place), name))


def _facts(bolt: Bolt, path: str, prefix: str, deep: int, busy: bool) -> Database:
    """Everything that can be had: pages first, then the buckets, then the keys; damage in one leaves the others."""
    damage: list[str] = []
    free = cluster = held = None
    checked = bolt.used <= deep
    with _noting(damage):
        if checked:
            free = survey(bolt).free * bolt.page_size
    revision, compacted = 0, -1
    with _noting(damage):
        keys = keyspace(bolt)
        cluster = clusters.read(keys)
        revision, compacted = keys.last().main, keys.compacted()
        held = contents.read(keys, bolt.size if checked else NEWEST, prefix)
    return Database(
        path=path,
        size=bolt.size,
        used=bolt.used,
        busy=busy,
        checked=checked,
        damage=damage[0] if damage else "",
        free=free,
        revision=revision,
        compacted=compacted,
        _cluster=cluster,
        _contents=held,
    )


@contextmanager
def _noting(damage: list[str]) -> Iterator[None]:
    try:
        yield
    except Damaged as fault:
        damage.append(f"page {fault.page}: {fault.reason}")
    except DrtoolError as fault:
        damage.append(fault.what)


def _busy(place: Path) -> bool:
    """Whether another process holds the db as bbolt does (flock LOCK_EX). Raises OSError where it cannot be opened."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    else:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        return False
    finally:
        os.close(descriptor)
