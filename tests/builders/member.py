"""Real trees whose etcd data is broken on purpose: db buckets rewritten, the log cut, files moved."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from drtool.commands.check import check
from drtool.core.report import Severity
from drtool.host.root import Root
from snapshots import amend, mvcc
from snapshots.amend import Amendment
from snapshots.cluster import Member, member_json
from tests.builders.real import _design, _unpacked
from tests.builders.tree import NOW, Tree

DATA = "/var/lib/etcd"
DB = f"{DATA}/member/snap/db"
WAL = f"{DATA}/member/wal"
Pairs = dict[bytes, bytes]


def member_tree(name: str, into: Path) -> Tree:
    """A copy of a real tree, its preallocated log written as a sparse file. Skips where the archive is not at hand."""
    shutil.copytree(_unpacked(name), into, symlinks=True, dirs_exist_ok=True, copy_function=_copy)
    return Tree(into, _design(into))


def _copy(source: str, target: str) -> str:
    size = os.path.getsize(source)  # noqa: PTH202 - shutil's signature
    if size < 1 << 20:
        shutil.copy2(source, target)
        return target
    with open(source, "rb") as read, open(target, "wb") as write:  # noqa: PTH123 - shutil's signature
        while chunk := read.read(1 << 16):
            if chunk.strip(b"\0"):
                write.write(chunk)
            else:
                write.seek(len(chunk), os.SEEK_CUR)
        write.truncate(size)
    shutil.copystat(source, target)
    return target


def causes(tree: Tree, at: datetime = NOW) -> tuple[str, ...]:
    """What `drtool check --root TREE` names as root causes, etcd's data and the objects in it included."""
    return check(Root(tree.root), at, probe=False).verdict.root_causes


def faults(tree: Tree, at: datetime = NOW) -> set[str]:
    """Ids of all findings at or above `error`."""
    found = check(Root(tree.root), at, probe=False).verdict.findings
    return {one.id for one in found if one.severity >= Severity.ERROR}


def warned(tree: Tree, at: datetime = NOW) -> set[str]:
    found = check(Root(tree.root), at, probe=False).verdict.findings
    return {one.id for one in found if one.severity == Severity.WARNING}


def rewrite(tree: Tree, **changes: Callable[[Pairs], Mapping[bytes, bytes]]) -> None:
    """Replaces small buckets of the tree's db by what each function makes of them."""
    place = tree.place(DB)
    with mvcc.opened(place) as keyspace:
        replaced = {name.encode(): dict(change(keyspace.small(name.encode()))) for name, change in changes.items()}
        descriptor = os.open(place, os.O_RDWR)
        try:
            amend.apply(descriptor, keyspace.bolt, Amendment(replaced))
        finally:
            os.close(descriptor)


def members(*listed: Member) -> Callable[[Pairs], Pairs]:
    """The members bucket with these added, each replacing one of its id."""
    return lambda old: old | {f"{one.id:x}".encode(): member_json(one) for one in listed}


def without(*ids: int) -> Callable[[Pairs], Pairs]:
    return lambda old: {key: value for key, value in old.items() if int(key, 16) not in ids}


def index(value: int) -> Callable[[Pairs], Pairs]:
    """The meta bucket with another consistent index."""
    return lambda old: old | {b"consistent_index": value.to_bytes(8)}


def segment(tree: Tree) -> Path:
    """The newest WAL segment."""
    return max(tree.place(WAL).glob("*-*.wal"))


def records(path: Path) -> Iterator[tuple[int, int]]:
    """(offset, end) of each record of a segment."""
    data, at = path.read_bytes(), 0
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        if not length:
            return
        padding = (length >> 56) & 7 if length >> 63 else 0
        end = at + 8 + (length & ((1 << 56) - 1)) + padding
        yield at, end
        at = end


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
