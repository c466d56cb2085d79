"""Judges a member's write-ahead log without keeping it: ids, newest snapshot mark, last entry, how it ends.

The same walk as wal.py makes, over a mapped file and with bounded work, for looking at a node rather than rebuilding
its data. Every segment begins with a record that carries the checksum of those before it, so each can be read alone.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from snapshots import wire
from snapshots.crc import crc32c
from snapshots.wal import (
    CRC,
    ENTRY,
    LENGTH,
    METADATA,
    NAME,
    SIZE_MASK,
    SNAPSHOT,
    STATE,
    numbers,
    unwritten,
)

BUDGET = 24 << 20
"""Bytes of records that are walked, newest segment first."""


TAIL = 4
"""Zeros at the end of a damaged record that say it was copied while it was being written. etcd's own rule asks for a
whole sector of them: it exits on less, and its log then says so."""


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the log says.

    `first` is the index that the oldest segment begins after, `mark` that of the newest snapshot record that was
    committed, `last` that of the newest entry (0 where there is none). `fault` is "" where the last record is followed
    by zeros or the end of the file; `cut` says that the file ends inside of a record, `torn` that a write was not
    finished, as a crash or a copy of a running member leaves it. `gap` names a segment that is missing between others.
    `whole` is False where older segments were left out.
    """

    segments: tuple[str, ...]
    member_id: int = 0
    cluster_id: int = 0
    first: int = 0
    mark: int = 0
    last: int = 0
    commit: int = 0
    fault: str = ""
    segment: str = ""
    offset: int = 0
    cut: bool = False
    torn: bool = False
    gap: str = ""
    whole: bool = True


@dataclass(slots=True)
class _Walk:
    """What the records of one segment come to."""

    crc: int = 0
    ids: tuple[int, int] | None = None
    newest: bytes = b""
    state: bytes = b""
    marks: list[int] = field(default_factory=list)
    fault: str = ""
    offset: int = 0
    cut: bool = False
    torn: bool = False

    @property
    def last(self) -> int:
        """The index of the newest entry: raft writes an older one only to replace it and all after it."""
        return _index(self.newest)

    @property
    def commit(self) -> int:
        return _index(self.state)


def _index(content: bytes) -> int:
    """Field 3 of an entry (its index) or of a hard state (the commit)."""
    try:
        return numbers(content, 3)[0]
    except wire.Malformed:
        return 0


def look(directory: Path, budget: int = BUDGET) -> LogFacts:
    """Raises OSError where the directory cannot be read."""
    paths = sorted(path for path in directory.iterdir() if NAME.fullmatch(path.name))
    if not paths:
        return LogFacts(())
    names = tuple(path.name for path in paths)
    walks: list[tuple[str, _Walk]] = []
    for path in reversed(paths):
        if budget <= 0 and walks[-1][1].ids:
            break
        walk = _segment(path, last=path == paths[-1])
        budget -= walk.offset
        walks.append((path.name, walk))
    facts = LogFacts(
        names,
        first=int(names[0].removesuffix(".wal").partition("-")[2], 16),
        gap=_gap(names),
        whole=len(walks) == len(paths),
    )
    return _summed(facts, walks)


def _summed(facts: LogFacts, walks: list[tuple[str, _Walk]]) -> LogFacts:
    """The newest segments stand first; the first fault in the order of the log is the one that counts."""
    ids = next((walk.ids for _, walk in walks if walk.ids), (0, 0))
    commit = next((walk.commit for _, walk in walks if walk.commit), 0)
    marks = [mark for _, walk in walks for mark in walk.marks if mark <= commit]
    facts = replace(
        facts,
        member_id=ids[0],
        cluster_id=ids[1],
        commit=commit,
        mark=max(marks, default=0),
        last=max((walk.last for _, walk in walks), default=0),
    )
    for name, walk in reversed(walks):
        if walk.fault:
            return replace(facts, fault=walk.fault, segment=name, offset=walk.offset, cut=walk.cut, torn=walk.torn)
    name, newest = walks[0]
    return replace(facts, segment=name, offset=newest.offset)


def _gap(names: Iterable[str]) -> str:
    numbers = [int(name[:16], 16) for name in names]
    for number in range(numbers[0], numbers[-1]):
        if number not in numbers:
            return f"{number:016x}"
    return ""


def _segment(path: Path, last: bool) -> _Walk:
    walk = _Walk()
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode):
            walk.fault = "no regular file"
        elif info.st_size == 0:
            walk.fault = "the file is empty"
        else:
            with mmap.mmap(file.fileno(), info.st_size, access=mmap.ACCESS_READ) as data:
                _records(walk, data, last)
    return walk


def _records(walk: _Walk, data: mmap.mmap, last: bool) -> None:
    end, size = 0, len(data)
    while end + LENGTH.size <= size:
        walk.offset = end
        (length,) = LENGTH.unpack_from(data, end)
        if length == 0:
            if end == 0:
                walk.fault = "no record in it"
            return
        body = length & SIZE_MASK
        padding = (length >> 56) & 0x7 if length >> 63 else 0
        start = end + LENGTH.size
        end = start + body + padding
        if end > size:
            walk.fault, walk.cut = "the record is longer than the rest of the file", True
            walk.torn = last and walk.offset > 0
            return
        try:
            _take(walk, data[start : start + body])
        except wire.Malformed as wrong:
            walk.fault = str(wrong)
            unfinished = unwritten(data, walk.offset, end) or not data[end - padding - TAIL : end].strip(b"\0")
            walk.torn = last and unfinished and not _more(data, end)
            return
    walk.offset = end


def _more(data: mmap.mmap, at: int) -> bool:
    """Whether anything was written after a record: then what is wrong with it is no write that never finished."""
    return any(
        data[place : place + (1 << 20)].strip(b"\0") for place in range(at, min(len(data), at + (4 << 20)), 1 << 20)
    )


def _take(walk: _Walk, record: bytes) -> None:
    kind, crc, content = _parts(record)
    if kind == CRC:
        if walk.crc not in (0, crc):
            raise wire.Malformed("the checksum does not continue the segment before")
        walk.crc = crc
        return
    running = crc32c(content, walk.crc)
    if running != crc:
        raise wire.Malformed(f"checksum {crc:08x} expected, {running:08x} computed")
    walk.crc = running
    if kind == ENTRY:
        walk.newest = content
    elif kind == STATE:
        walk.state = content
    elif kind == SNAPSHOT:
        walk.marks.append(numbers(content, 1)[0])
    elif kind == METADATA:
        member, cluster = numbers(content, 1, 2)
        walk.ids = (member, cluster)
    else:
        raise wire.Malformed(f"a record of type {kind}")


def _parts(record: bytes) -> tuple[int, int, bytes]:
    """Type, checksum and data. Servers write the three fields in order; the loop is spared for those."""
    if len(record) > 4 and record[0] == 0x08 and record[1] < 0x80 and record[2] == 0x10:
        crc, at = wire.varint(record, 3)
        if at == len(record):
            return record[1], crc, b""
        if record[at] == 0x1A:
            size, at = wire.varint(record, at + 1)
            if at + size == len(record):
                return record[1], crc, record[at:]
    kind, crc, content = 0, 0, b""
    for number, value in wire.fields(record):
        if number == 1:
            kind = wire.unsigned(value)
        elif number == 2:
            crc = wire.unsigned(value)
        elif number == 3:
            content = wire.blob(value)
    return kind, crc, content
