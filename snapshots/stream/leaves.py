"""The common leaves of a streaming db, many at once, as columns: bucket `key` as etcd's servers write it.

What does not look exactly like that is left to StreamCheck, which goes through it pair by pair.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain, compress, islice, repeat
from operator import add, eq, ge, le, sub
from struct import Struct
from typing import NamedTuple

from snapshots.bolt import ELEMENT_SIZE, HEADER_SIZE, LEAF
from snapshots.mvcc import REVISION_SIZE, TOMBSTONE_SIZE, checked_user_keys
from snapshots.stream.rows import Pages, Revisions, addend, filled
from snapshots.wire import Malformed

SEPARATOR = b"_"
LIMIT = 1 << 16
"""Elements taken together; a batch with more is gone through page by page, in less memory."""


class Leaf(NamedTuple):
    """A leaf whose whole run of pages lies in the batch, from byte `at` to `end`."""

    number: int
    at: int
    end: int
    elements: int


def leaves(data: bytes, first: int, count: int, size: int) -> tuple[list[Leaf], Sequence[int], int]:
    """(leaves with elements, places of other pages to look at, how many pages may be taken now) among `count` pages
    that begin with page `first`: fewer than `count` where the run of a page reaches beyond them.
    """
    heads = _heads(count).unpack(b"".join([data[at : at + HEADER_SIZE] for at in range(0, count * size, size)]))
    named = compress(range(count), map(eq, heads[0::4], range(first, first + count)))
    found: list[Leaf] = []
    other: list[int] = []
    runs = False
    for place in named:
        _, flags, elements, overflow = heads[4 * place : 4 * place + 4]
        if overflow and place + overflow >= count:
            count = place
            break
        if flags == LEAF and elements:
            at = place * size
            found.append(Leaf(first + place, at, at + (overflow + 1) * size, elements))
        else:
            runs = runs or overflow > 0
            other.append(place)
    if runs:  # their other pages are to be looked at, too
        taken = {leaf.number - first for leaf in found}
        other = [place for place in range(count) if place not in taken]
    return found, other, count


@lru_cache(maxsize=512)
def _heads(count: int) -> Struct:
    return Struct("<" + "QHHI" * count)


def take(pages: Pages, revisions: Revisions, data: bytes, size: int, found: Sequence[Leaf]) -> bool:
    """Adds the rows of all the leaves; False, and nothing added, where one of them looks unusual."""
    numbers, begins, stops, counts = zip(*found, strict=True)
    bases = [at + HEADER_SIZE for at in begins]
    floors = [base + count * ELEMENT_SIZE for base, count in zip(bases, counts, strict=True)]
    total = sum(counts)
    if total > LIMIT or not all(map(le, floors, stops)):
        return False
    joined = b"".join([data[base:floor] for base, floor in zip(bases, floors, strict=True)])
    table = struct.unpack(f"<{4 * total}I", joined)
    key_sizes = table[2::4]
    if any(table[0::4]) or not set(key_sizes) <= {REVISION_SIZE, TOMBSTONE_SIZE}:
        return False
    elements = chain.from_iterable(map(range, bases, floors, repeat(ELEMENT_SIZE)))
    starts = list(map(add, elements, table[1::4]))
    middles = list(map(add, starts, key_sizes))
    ends = list(map(add, middles, table[3::4]))
    *places, _ = accumulate(counts, initial=0)
    lasts = [ends[place + count - 1] for place, count in zip(places, counts, strict=True)]
    if not _back_to_back(starts, ends, places, floors) or not all(map(le, lasts, stops)):
        return False
    keys = [data[start:middle] for start, middle in zip(starts, middles, strict=True)]
    deleted = [place for place, length in enumerate(key_sizes) if length == TOMBSTONE_SIZE]
    if not _revisions(keys, deleted, places):
        return False
    try:
        user_keys = checked_user_keys(data, middles, ends)
    except Malformed:
        return False
    row = len(revisions.key)
    revisions.extend(user_keys, map(sub, ends, middles), deleted)
    for place, number in enumerate(numbers, len(pages.first) + 1):
        pages.leaf_at[number] = place
    pages.overflow.extend([(stop - at) // size - 1 for at, stop in zip(begins, stops, strict=True)])
    pages.first.extend([row + place for place in places])
    pages.count.extend(counts)
    with memoryview(data) as view:
        pages.crc.extend([addend(view[floor:last]) for floor, last in zip(floors, lasts, strict=True)])
    pages.size.extend(map(sub, lasts, floors))
    edges = zip(places, counts, strict=True)
    pages.ends += filled(chain.from_iterable([(keys[place], keys[place + count - 1]) for place, count in edges]))
    return True


def _back_to_back(starts: list[int], ends: list[int], places: list[int], floors: list[int]) -> bool:
    """bbolt writes each page's pairs without gaps, the first right after the element table."""
    joints = sum(map(eq, islice(starts, 1, None), ends))
    return joints == len(starts) - len(places) and [starts[place] for place in places] == floors


def _revisions(keys: list[bytes], deleted: list[int], places: list[int]) -> bool:
    """Whether each key is a revision, and comes after the one before it on the same page."""
    falls = compress(range(1, len(keys)), map(ge, keys, islice(keys, 1, None)))
    if not set(falls) <= set(places):
        return False
    if any(keys[place][-1] != ord("t") for place in deleted):
        return False
    short = [key[:REVISION_SIZE] for key in keys] if deleted else keys
    return b"".join(short)[8::REVISION_SIZE].count(SEPARATOR) == len(keys)
