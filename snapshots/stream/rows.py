"""What a StreamCheck remembers of the pages that have passed, as columns of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from snapshots.crc import crc32c
from snapshots.mvcc import REVISION_SIZE, TOMBSTONE_SIZE
from snapshots.totals import prefix_of

MEMORY = 64 << 20
"""Bytes of pages that may be held: runs that are still arriving, branches, leaves of small buckets."""
DELETED = 1 << 15
"""Marks the prefix of a tombstone."""
MAX_PREFIXES = DELETED - 1
NOTHING = 0xFFFF_FFFF
"""Inverted, as CRC-32C does before and after, it is 0."""
END = TOMBSTONE_SIZE
"""Bytes of a leaf's first and last key each; a zero byte fills up what is no tombstone, and sorts as its end does."""


@dataclass(slots=True)
class Revisions:
    """One row a revision, in the order of the stream: its user key's hash, prefix (with DELETED) and value's size."""

    key: array[int] = field(default_factory=lambda: array("q"))
    prefix: array[int] = field(default_factory=lambda: array("H"))
    size: array[int] = field(default_factory=lambda: array("I"))
    prefixes: dict[bytes, int] = field(default_factory=dict)
    stems: dict[bytes, int] = field(default_factory=dict)

    def extend(self, keys: Sequence[bytes], sizes: Iterable[int], deleted: Iterable[int] = ()) -> None:
        """As many rows at once; `deleted` are the places of tombstones among them."""
        row = len(self.key)
        self.key.extend(map(hash, keys))
        self.prefix.extend(self._prefixes(keys))
        self.size.extend(sizes)
        for place in deleted:
            self.prefix[row + place] |= DELETED

    def _prefixes(self, keys: Sequence[bytes]) -> Iterator[int]:
        """Told by where the slashes are, so keys with the same stem share it, unless a key is a prefix itself."""
        stems = [key[: key.rfind(b"/") + 1] for key in keys]
        for place, number in enumerate(map(self.stems.get, stems)):
            yield self._prefix(keys[place], stems[place]) if number is None else number

    def _prefix(self, key: bytes, stem: bytes) -> int:
        prefix = prefix_of(key)
        number = self.prefixes.get(prefix)
        if number is None:
            if len(self.prefixes) == MAX_PREFIXES:
                prefix = b""
            number = self.prefixes.setdefault(prefix, len(self.prefixes))
        if len(prefix) <= len(stem) and prefix and len(self.stems) < MAX_PREFIXES:
            self.stems[stem] = number
        return number


@dataclass(slots=True)
class Pages:
    """What is remembered of the pages by number. `leaf_at` is a row of the leaf columns + 1, 0 for no such leaf.

    A leaf's rows of Revisions are `count` from `first` on. `crc` is what its `size` bytes add to a checksum (see
    addend), `ends` its first and its last key.
    """

    leaf_at: array[int]
    overflow: array[int] = field(default_factory=lambda: array("I"))
    first: array[int] = field(default_factory=lambda: array("Q"))
    count: array[int] = field(default_factory=lambda: array("H"))
    crc: array[int] = field(default_factory=lambda: array("I"))
    size: array[int] = field(default_factory=lambda: array("I"))
    ends: bytearray = field(default_factory=bytearray)
    whole: dict[int, bytes] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    held: int = 0

    def low(self, row: int) -> bytes:
        """The first key of a leaf."""
        return _end(self.ends, 2 * row)

    def high(self, row: int) -> bytes:
        """The last key of a leaf."""
        return _end(self.ends, 2 * row + 1)

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


def filled(keys: Iterable[bytes]) -> bytes:
    """Keys as `Pages.ends` holds them."""
    return b"".join([key.ljust(END, b"\0") for key in keys])


def addend(data: bytes | memoryview) -> int:
    """What some bytes add to the CRC of those before them, carried over as many zeros: a CRC without inversions."""
    return crc32c(data, NOTHING) ^ NOTHING


def _end(ends: bytearray, place: int) -> bytes:
    key = bytes(ends[place * END : (place + 1) * END])
    return key[:REVISION_SIZE] if key[-1] == 0 else key
