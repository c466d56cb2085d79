"""etcd's write-ahead log: read with its CRC chain, and the first segment of a restored member.

Frame: `length u64 LE`, a walpb.Record {1 type, 2 crc, 3 data}, zero padding to 8 bytes. The low 56 bits of `length` are
the record's size; where there is padding, the top byte is 0x80 | its size. Zero ends the used part. The crc runs over
the data of all records of all segments; a record of type 4 carries it into the next one (server/storage/wal/*.go).
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from drtool.core.errors import Unsound
from snapshots import wire
from snapshots.crc import crc32c

METADATA, ENTRY, STATE, CRC, SNAPSHOT = 1, 2, 3, 4, 5
LENGTH = Struct("<Q")
SIZE_MASK = (1 << 56) - 1
SECTOR = 512
MAX_SEGMENT = 1 << 30
SEGMENT_SIZE = 64_000_000
"""What etcd preallocates, so that later fdatasyncs change no metadata."""
NAME = re.compile(r"([0-9a-f]{16})-([0-9a-f]{16})\.wal")
NORMAL, CONF_CHANGE, CONF_CHANGE_V2 = 0, 1, 2


class Record(NamedTuple):
    kind: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """A raft log entry; `kind` is NORMAL, CONF_CHANGE or CONF_CHANGE_V2."""

    index: int
    term: int
    kind: int
    data: bytes


class HardState(NamedTuple):
    term: int = 0
    vote: int = 0
    commit: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A snapshot record: entries up to `index` are in the db or in the .snap of that name."""

    index: int
    term: int


@dataclass(frozen=True, slots=True)
class Tail:
    """How the log ends: `clean`, `torn` (cut in the middle of a write, as a crash leaves it) or `corrupt`."""

    kind: str
    segment: str
    offset: int
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.segment} at byte {self.offset}: {self.reason or self.kind}"


@dataclass(frozen=True, slots=True)
class Log:
    """A whole log. `entries` by index; a later record of an index replaces it and all after it, as raft does."""

    member_id: int
    cluster_id: int
    entries: tuple[Entry, ...]
    state: HardState
    marks: tuple[Mark, ...]
    tail: Tail
    segments: tuple[str, ...]

    @property
    def last(self) -> Entry | None:
        return self.entries[-1] if self.entries else None


def segments(directory: Path) -> tuple[Path, ...]:
    """The segment files in order. Raises Unsound where one is missing between two others."""
    named = sorted((path for path in directory.iterdir() if NAME.fullmatch(path.name)), key=lambda path: path.name)
    numbers = [int(path.name[:16], 16) for path in named]
    for before, after in pairwise(numbers):
        if after != before + 1:
            raise Unsound(f"{directory}: segment {before + 1:016x} of the WAL is missing", "use another copy")
    return tuple(named)


def read(directory: Path, after: int = 0) -> Log:
    """Raises Unsound where there is no log or a segment cannot be one; a bad record ends the log (see `tail`).

    Entries up to `after` are kept without their data: a db that has seen them needs it no more.
    """
    paths = segments(directory)
    if not paths:
        raise Unsound(f"{directory}: holds no WAL segment", "the directory is no member's, or not a whole copy")
    found = _Reading(paths, after)
    for path in paths:
        if not found.take(path, last=path == paths[-1]):
            break
    return found.log()


class _Reading:
    """Folds records into a Log."""

    def __init__(self, paths: Sequence[Path], after: int = 0) -> None:
        self.segments = tuple(path.name for path in paths)
        self.after = after
        self.crc = 0
        self.entries: list[Entry] = []
        self.ids = (0, 0)
        self.state = HardState()
        self.marks: list[Mark] = []
        self.tail = Tail("clean", self.segments[-1], 0)

    def take(self, path: Path, last: bool) -> bool:
        """One segment; False where the log ends in it."""
        if not path.is_file():  # a FIFO would be waited for
            raise Unsound(f"{path} is no regular file", "the directory is no member's")
        if path.stat().st_size > MAX_SEGMENT:
            raise Unsound(f"{path}: larger than any WAL segment", "the directory is no member's")
        data = path.read_bytes()
        at = 0
        while at + LENGTH.size <= len(data):
            (length,) = LENGTH.unpack_from(data, at)
            if length == 0:
                break
            size, padding = length & SIZE_MASK, (length >> 56) & 0x7 if length >> 63 else 0
            start, end = at + LENGTH.size, at + LENGTH.size + size + padding
            if end > len(data):
                return self._ends(path, at, data, len(data), last, "the record is longer than the file")
            try:
                self._record(data[start : start + size])
            except wire.Malformed as wrong:
                return self._ends(path, at, data, end, last, str(wrong))
            at = end
        self.tail = Tail("clean", path.name, at)
        return True

    def _ends(self, path: Path, at: int, data: bytes, end: int, last: bool, reason: str) -> bool:
        torn = last and (end >= len(data) or unwritten(data, at, end))
        self.tail = Tail("torn" if torn else "corrupt", path.name, at, reason)
        return False

    def _record(self, data: bytes) -> None:
        kind, crc, content = 0, 0, b""
        for number, value in wire.fields(data):
            if number == 1:
                kind = wire.unsigned(value)
            elif number == 2:
                crc = wire.unsigned(value)
            elif number == 3:
                content = wire.blob(value)
        if kind == CRC:
            if self.crc not in (0, crc):
                raise wire.Malformed("the checksum does not continue the segment before")
            self.crc = crc
            return
        running = crc32c(content, self.crc)
        if running != crc:
            raise wire.Malformed(f"checksum {crc:#010x}, but the data has {running:#010x}")
        self._content(kind, content)
        self.crc = running

    def _content(self, kind: int, content: bytes) -> None:
        if kind == ENTRY:
            entry = decode_entry(content)
            if self.entries and entry.index <= self.entries[-1].index:
                keep = entry.index - self.entries[0].index
                del self.entries[max(keep, 0) :]
            elif self.entries and entry.index > self.entries[-1].index + 1:
                if not any(mark.index == entry.index - 1 for mark in self.marks):
                    raise wire.Malformed(f"entry {entry.index} after {self.entries[-1].index}")
                self.entries.clear()  # the leader sent a snapshot instead of what lies between
            self.entries.append(entry if entry.index > self.after else replace(entry, data=b""))
        elif kind == STATE:
            self.state = HardState(*numbers(content, 1, 2, 3))
        elif kind == SNAPSHOT:
            self.marks.append(Mark(*numbers(content, 1, 2)))
        elif kind == METADATA:
            member_id, cluster_id = numbers(content, 1, 2)
            self.ids = (member_id, cluster_id)
        else:
            raise wire.Malformed(f"record of type {kind}")

    def log(self) -> Log:
        return Log(*self.ids, tuple(self.entries), self.state, tuple(self.marks), self.tail, self.segments)


def unwritten(data: bytes | mmap.mmap, at: int, end: int) -> bool:
    """etcd's own rule (decoder.go isTornEntry): a sector of the record is all zero, so it was never written."""
    while at < end:
        sector = min(end, at + SECTOR - at % SECTOR)
        if not data[at:sector].strip(b"\0"):
            return True
        at = sector
    return False


def decode_entry(data: bytes) -> Entry:
    """raftpb.Entry {1 type, 2 term, 3 index, 4 data}."""
    kind = term = index = 0
    content = b""
    for number, value in wire.fields(data):
        if number == 1:
            kind = wire.unsigned(value)
        elif number == 2:
            term = wire.unsigned(value)
        elif number == 3:
            index = wire.unsigned(value)
        elif number == 4:
            content = wire.blob(value)
    return Entry(index, term, kind, content)


def numbers(data: bytes, *wanted: int) -> tuple[int, ...]:
    """Those fields of a message as unsigned integers, 0 for one that is not there."""
    found = {number: value for number, value in wire.fields(data) if number in wanted}
    return tuple(wire.unsigned(found.get(number, 0)) for number in wanted)


def frames(records: Iterable[Record]) -> bytes:
    """A first segment's used part, its crc record included; etcd fills the rest of 64,000,000 bytes with zeros."""
    return b"".join(_frames(records))


def _frames(records: Iterable[Record]) -> Iterator[bytes]:
    yield _frame(wire.field(1, CRC) + wire.field(2, 0))
    crc = 0
    for kind, data in records:
        crc = crc32c(data, crc)
        yield _frame(wire.field(1, kind) + wire.field(2, crc) + wire.field(3, data))


def _frame(record: bytes) -> bytes:
    padding = -len(record) % 8
    length = len(record) | ((0x80 | padding) << 56 if padding else 0)
    return LENGTH.pack(length) + record + bytes(padding)


def encode_entry(entry: Entry) -> bytes:
    return (
        wire.field(1, entry.kind) + wire.field(2, entry.term) + wire.field(3, entry.index) + wire.field(4, entry.data)
    )
