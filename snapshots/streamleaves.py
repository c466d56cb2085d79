"""The common leaves of a streaming db, many at once, as columns: bucket `key` as etcd's servers write it.

What does not look exactly like that is left to StreamCheck, which goes through it pair by pair.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate, chain, islice, repeat
from operator import add, eq, ge, itemgetter, le, sub
from typing import NamedTuple

from snapshots.bolt import ELEMENT_SIZE, HEADER, HEADER_SIZE, LEAF
from snapshots.crc import crc32c
from snapshots.leafcolumns import GROUP_LIMIT, SEPARATOR
from snapshots.mvcc import KEY_TAG, NUMBERS, REVISION_SIZE, TOMBSTONE_SIZE, VALUE_TAG, checked_user_key
from snapshots.streamrows import MASK_63, TOMBSTONE, Pages, Revisions
from snapshots.wire import Malformed


class Leaf(NamedTuple):
    """A leaf whose whole run of pages lies in the batch, from byte `at` to `end`."""

    number: int
    at: int
    end: int
    elements: int


def leaves(data: bytes, first: int, count: int, size: int) -> tuple[list[Leaf], int]:
    """The leaves with elements among `count` pages that begin with page `first`, and how many pages may be taken now:
    fewer than `count` where the run of a page reaches beyond them.
    """
    heads = [data[at : at + HEADER_SIZE] for at in range(0, count * size, size)]
    found: list[Leaf] = []
    for place, (identity, flags, elements, overflow) in enumerate(HEADER.iter_unpack(b"".join(heads))):
        if identity != first + place or (not overflow and flags != LEAF):
            continue
        if place + overflow >= count:
            return found, place
        if flags == LEAF and elements:
            at = place * size
            found.append(Leaf(identity, at, at + (overflow + 1) * size, elements))
    return found, count


def take(pages: Pages, revisions: Revisions, data: bytes, size: int, found: Sequence[Leaf]) -> bool:
    """Adds the rows of all the leaves; False, and nothing added, where one of them looks unusual."""
    counts = [leaf.elements for leaf in found]
    bases = [leaf.at + HEADER_SIZE for leaf in found]
    floors = [base + count * ELEMENT_SIZE for base, count in zip(bases, counts, strict=True)]
    total = sum(counts)
    if total > GROUP_LIMIT or not all(map(le, floors, map(itemgetter(2), found))):
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
    places = list(accumulate(counts, initial=0))
    lasts = [ends[place - 1] for place in islice(places, 1, None)]
    del places[-1]
    if not _back_to_back(starts, ends, places, floors) or not all(map(le, lasts, map(itemgetter(2), found))):
        return False
    keys = [data[start:middle] for start, middle in zip(starts, middles, strict=True)]
    columns = _revisions(keys, key_sizes, places)
    if columns is None:
        return False
    try:
        user_keys = _user_keys(data, middles, ends)
    except Malformed:
        return False
    row = len(revisions.main)
    revisions.extend(*columns, user_keys, map(sub, ends, middles))
    with memoryview(data) as view:
        for leaf, place, floor, last in zip(found, places, floors, lasts, strict=True):
            with view[floor:last] as region:
                crc = crc32c(region)
            pages.add(leaf.number, (leaf.end - leaf.at) // size - 1, row + place, leaf.elements, crc, last - floor)
    return True


def _user_keys(data: bytes, starts: list[int], ends: list[int]) -> list[bytes]:
    """`checked_user_key` of each, with the length of a value below 16 KiB read in place. Raises Malformed."""
    match = NUMBERS.match
    found = []
    for start, end in zip(starts, ends, strict=True):
        size = data[start + 1] if end - start > 1 and data[start] == KEY_TAG else 0x80
        stop = start + 2 + size
        numbers = match(data, stop) if size < 0x80 else None
        at = numbers.end() if numbers else end
        if at + 2 < end and data[at] == VALUE_TAG:
            low, high = data[at + 1], data[at + 2]
            if low < 0x80:
                at += 2 + low
            elif high < 0x80:
                at += 3 + (low & 0x7F) + (high << 7)
            if at == end:
                found.append(data[start + 2 : stop])
                continue
        found.append(checked_user_key(data, start, end))
    return found


def _back_to_back(starts: list[int], ends: list[int], places: list[int], floors: list[int]) -> bool:
    """bbolt writes each page's pairs without gaps, the first right after the element table."""
    joints = sum(map(eq, islice(starts, 1, None), ends))
    return joints == len(starts) - len(places) and [starts[place] for place in places] == floors


def _revisions(
    keys: list[bytes], sizes: tuple[int, ...], places: list[int]
) -> tuple[list[int], tuple[int, ...]] | None:
    """(main, sub) of each key, tombstones marked; None where one is no revision, or not after the one before it."""
    falls = [place for place, fall in enumerate(map(ge, keys, islice(keys, 1, None)), 1) if fall]
    if not set(falls) <= set(places):
        return None
    short = [key[:REVISION_SIZE] for key in keys] if TOMBSTONE_SIZE in sizes else keys
    numbers = struct.unpack(">" + "QBQ" * len(keys), b"".join(short))
    if set(numbers[1::3]) != {SEPARATOR}:
        return None
    mains = [main & MASK_63 for main in numbers[0::3]]
    if TOMBSTONE_SIZE in sizes:
        for place, key in enumerate(keys):
            if len(key) == TOMBSTONE_SIZE:
                if key[-1] != ord("t"):
                    return None
                mains[place] |= TOMBSTONE
    return mains, numbers[2::3]
