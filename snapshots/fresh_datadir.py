"""Writes a member's data directory: there at once when it is whole, with the log of a cluster that has just begun."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from drtool.core.errors import Refused
from drtool.host.writing import sync_directory
from snapshots import snapfile, wal, wire
from snapshots.cluster import Member
from snapshots.datadir import db_path, wal_path
from snapshots.membership import conf_change, conf_state
from snapshots.wal import CONF_CHANGE, ENTRY, METADATA, SEGMENT_SIZE, SNAPSHOT, STATE, Entry, Record

TERM = 1
"""The term that a restored log ends in, as etcdutl's."""
IGNORED = frozenset({"lost+found"})


@contextmanager
def fresh(target: Path) -> Iterator[Path]:
    """A directory in which to build what becomes `target` at once when the block ends well; on any error it is gone.

    Raises Refused where the target holds anything. It is built beside the target and renamed; a mount point cannot be
    renamed, so in one the parts are built inside and `member` alone is. What a killed run left there is removed.
    """
    target = Path(os.path.realpath(target))
    mounted = target.is_dir() and os.path.ismount(target)
    place = target if mounted else target.parent
    _clear(place, target.name)
    check_empty(target)
    if not place.is_dir():
        raise Refused(f"{place}: no such directory", "make it first, with the owner that etcd runs as")
    building = place / f".{target.name}.{secrets.token_hex(6)}.part"
    building.mkdir(0o700)
    at_work = os.open(building, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(at_work, fcntl.LOCK_EX)
        yield building
        if target.is_dir():
            _own_as(target, building)
        sync_directory(building)
        check_empty(target, building.name)
        if mounted:
            (building / "member").rename(target / "member")
            building.rmdir()
        else:
            building.rename(target)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    finally:
        os.close(at_work)
    sync_directory(place)


def _clear(place: Path, name: str) -> None:
    """Half-built directories of runs that were killed: they hold the cluster's Secrets, and nobody holds their lock."""
    ours = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{12}}\.part")
    for path in [path for path in place.glob(".*.part") if ours.fullmatch(path.name)]:
        with suppress(OSError):
            left = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(left)


def check_empty(target: Path, but: str = "") -> None:
    """Raises Refused where `target` is anything else than absent or an empty directory."""
    try:
        held = set(os.listdir(target)) - IGNORED - {but}  # noqa: PTH208 - names, not paths
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise Refused(f"{target} is not a directory", "name a new or an empty directory") from None
    if held:
        raise Refused(f"{target} is not empty: it holds {min(held)}", "move it aside, or name a new directory")


def _own_as(model: Path, directory: Path) -> None:
    """Gives what was built to the owner of the directory that it fills, where this user may."""
    info = model.stat()
    if os.geteuid() or (info.st_uid, info.st_gid) == (0, 0):
        return
    for path in (directory, *directory.rglob("*")):
        with suppress(PermissionError):
            os.chown(path, info.st_uid, info.st_gid)


def write_log(directory: Path, members: Sequence[Member], member_id: int, cluster_id: int) -> None:
    """The WAL and .snap of a member whose cluster has just been made of `members` (ascending by id); fsynced."""
    count = len(members)
    conf = conf_state(members)
    entries = [Entry(at, TERM, CONF_CHANGE, conf_change(one)) for at, one in enumerate(members, 1)]
    state = wire.field(1, TERM) + wire.field(2, members[0].id) + wire.field(3, count)
    records = [
        Record(METADATA, wire.field(1, member_id) + wire.field(2, cluster_id)),
        Record(SNAPSHOT, wire.field(1, 0) + wire.field(2, 0)),
        *(Record(ENTRY, wal.encode_entry(entry)) for entry in entries),
        Record(STATE, state),
        Record(SNAPSHOT, wire.field(1, count) + wire.field(2, TERM) + wire.field(3, conf)),
    ]
    log = wal_path(directory)
    log.mkdir(0o700, parents=True)
    _write(log / f"{0:016x}-{0:016x}.wal", wal.frames(records), SEGMENT_SIZE)
    snap = db_path(directory).parent
    _write(snap / snapfile.name(count, TERM), snapfile.encode(members, TERM))
    for place in (log, snap, directory / "member"):
        sync_directory(place)


def _write(path: Path, data: bytes, size: int = 0) -> None:
    """A new file, fsynced; `size` bytes of it are set aside where the file system can."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if size:
            _set_aside(descriptor, size)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _set_aside(descriptor: int, size: int) -> None:
    """Where the file system cannot, a short segment boots too, and etcd grows it."""
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as refused:
        if refused.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
