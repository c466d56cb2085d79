"""What a StreamCheck remembers of the pages that have passed, as columns of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from snapshots.figures import prefix_of
from snapshots.mvcc import TOMBSTONE_SIZE

MEMORY = 64 << 20
"""Bytes of pages that may be held: runs that are still arriving, branches, leaves of small buckets."""
MAX_PREFIXES = 0xFFFF
TOMBSTONE = 1 << 63
MASK_63 = TOMBSTONE - 1


@dataclass(slots=True)
class Revisions:
    """One row a revision, in the order of the stream. `main` has bit 63 set for a tombstone."""

    main: array[int] = field(default_factory=lambda: array("Q"))
    sub: array[int] = field(default_factory=lambda: array("Q"))
    key: array[int] = field(default_factory=lambda: array("q"))
    prefix: array[int] = field(default_factory=lambda: array("H"))
    size: array[int] = field(default_factory=lambda: array("I"))
    prefixes: dict[bytes, int] = field(default_factory=dict)
    stems: dict[bytes, int] = field(default_factory=dict)

    def add(self, revision: bytes, key: bytes, size: int) -> None:
        main = int.from_bytes(revision[:8]) & MASK_63 | (TOMBSTONE if len(revision) == TOMBSTONE_SIZE else 0)
        self.extend([main], [int.from_bytes(revision[9:17])], [key], [size])

    def extend(self, main: list[int], sub: Iterable[int], keys: list[bytes], sizes: Iterable[int]) -> None:
        """As many rows at once; tombstones are marked in `main` already."""
        self.main.extend(main)
        self.sub.extend(sub)
        self.key.extend(map(hash, keys))
        self.prefix.extend(map(self._prefix, keys))
        self.size.extend(sizes)

    def _prefix(self, key: bytes) -> int:
        """Told by where the slashes are, so keys with the same stem share it, unless a key is a prefix itself."""
        stem = key[: key.rfind(b"/") + 1]
        number = self.stems.get(stem)
        if number is not None:
            return number
        prefix = prefix_of(key)
        number = self.prefixes.get(prefix)
        if number is None:
            if len(self.prefixes) == MAX_PREFIXES:
                prefix = b""
            number = self.prefixes.setdefault(prefix, len(self.prefixes))
        if len(prefix) <= len(stem) and prefix and len(self.stems) < MAX_PREFIXES:
            self.stems[stem] = number
        return number

    def revision(self, row: int) -> bytes:
        """The key of bucket `key` that this row was."""
        main = self.main[row]
        mark = b"t" if main & TOMBSTONE else b""
        return b"%b_%b%b" % ((main & MASK_63).to_bytes(8), self.sub[row].to_bytes(8), mark)


@dataclass(slots=True)
class Pages:
    """What is remembered of the pages by number. `leaf_at` is a row of the leaf columns + 1, 0 for no such leaf."""

    leaf_at: array[int]
    overflow: array[int] = field(default_factory=lambda: array("I"))
    first: array[int] = field(default_factory=lambda: array("Q"))
    count: array[int] = field(default_factory=lambda: array("H"))
    crc: array[int] = field(default_factory=lambda: array("I"))
    size: array[int] = field(default_factory=lambda: array("I"))
    whole: dict[int, bytes] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    held: int = 0

    def add(self, number: int, overflow: int, first: int, count: int, crc: int, size: int) -> None:
        """A leaf of revisions: `count` rows from `first` on, and the checksum over their `size` bytes."""
        self.leaf_at[number] = len(self.first) + 1
        self.overflow.append(overflow)
        self.first.append(first)
        self.count.append(count)
        self.crc.append(crc)
        self.size.append(size)

    def keep(self, number: int, image: bytes) -> None:
        self.held += len(image)
        if self.held > MEMORY:
            self.held -= len(image)
            self.blame(number, "is more than this check keeps in memory")
        else:
            self.whole[number] = image

    def blame(self, number: int, reason: str) -> None:
        if len(self.faults) < MAX_PREFIXES:
            self.faults[number] = reason
