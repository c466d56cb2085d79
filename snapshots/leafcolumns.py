"""Takes the leaves below one branch page together, as columns: what makes a survey fast.

Their element tables are read in one go and compared column by column, and each page's pairs, which bbolt writes back to
back, go into the checksum as one region. Nothing is taken where anything is unusual: survey then goes pair by pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain, compress, islice, repeat
from operator import add, eq, itemgetter, le, lt, ne, sub
from re import Match, Pattern
from struct import Struct

from snapshots.bolt import ELEMENT_SIZE, HEADER_SIZE, LEAF, Data, leaf_table
from snapshots.crc import crc32c
from snapshots.mvcc import (
    KEY_TAG,
    REVISION_SIZE,
    TOMBSTONE_SIZE,
    UP_TO_VALUE,
    VALUE_TAG,
    rest_is_decodable,
)
from snapshots.tally import REVISION_SHIFT, Survey

SEPARATOR = ord("_")
GROUP_LIMIT = 1 << 16
"""Elements below one branch page; more are gone through page by page, in less memory."""


def take_leaves(walk: Survey, numbers: tuple[int, ...], lows: list[bytes], highs: list[bytes | None]) -> bool:
    """Takes the leaves of one branch as columns. False, and nothing taken, where anything looks unusual."""
    bolt = walk.bolt
    data, size = bolt.data, bolt.page_size
    if min(numbers) < 2 or max(numbers) >= bolt.meta.pages:
        return False
    offsets = [number * size for number in numbers]
    heads = _heads(len(numbers)).unpack(b"".join([data[at : at + HEADER_SIZE] for at in offsets]))
    counts, overflows = heads[2::4], heads[3::4]
    total = sum(counts)
    if heads[0::4] != numbers or set(heads[1::4]) != {LEAF} or 0 in counts or total > GROUP_LIMIT:
        return False
    runs = [at + (overflow + 1) * size for at, overflow in zip(offsets, overflows, strict=True)]
    bases = [at + HEADER_SIZE for at in offsets]
    floors = [base + count * ELEMENT_SIZE for base, count in zip(bases, counts, strict=True)]
    if max(runs) > bolt.used or not all(map(le, floors, runs)):
        return False
    table = leaf_table(total).unpack(b"".join([data[base:floor] for base, floor in zip(bases, floors, strict=True)]))
    key_sizes = table[2::4]
    elements = chain.from_iterable(map(range, bases, floors, repeat(ELEMENT_SIZE)))
    starts = list(map(add, elements, table[1::4]))
    middles = list(map(add, starts, key_sizes))
    ends = list(map(add, middles, table[3::4]))
    places = list(accumulate(counts, initial=0))
    lasts = [ends[place - 1] for place in islice(places, 1, None)]
    del places[-1]
    back_to_back = sum(map(eq, islice(starts, 1, None), ends)) == total - len(numbers)
    if any(table[0::4]) or 0 in key_sizes or not back_to_back:
        return False
    if [starts[place] for place in places] != floors or not all(map(le, lasts, runs)):
        return False
    keys = [data[start:middle] for start, middle in zip(starts, middles, strict=True)]
    if not _ordered(walk.previous, keys, places, lows, highs):
        return False
    if walk.in_key and not _count(walk, keys, set(key_sizes), middles, ends):
        return False
    _take(walk, numbers, overflows, floors, lasts)
    walk.pairs += total
    walk.previous = keys[-1]
    return True


@lru_cache(maxsize=512)
def _heads(count: int) -> Struct:
    return Struct("<" + "QHHI" * count)


def _ordered(
    previous: bytes | None, keys: list[bytes], places: list[int], lows: list[bytes], highs: list[bytes | None]
) -> bool:
    """Keys ascend over all pages, and each page's lie between its parent's key and the next."""
    lasts = [keys[place - 1] for place in islice(places, 1, None)] + keys[-1:]
    *inner, outer = highs
    return (
        (previous is None or previous < keys[0])
        and all(map(lt, keys, islice(keys, 1, None)))
        and all(map(le, lows, [keys[place] for place in places]))
        and all(map(lt, lasts, inner))  # type: ignore[arg-type]  # only the last one may be open
        and (outer is None or keys[-1] < outer)
    )


def _count(walk: Survey, revisions: list[bytes], sizes: set[int], starts: list[int], ends: list[int]) -> bool:
    """Counts the user keys of as many KeyValues; False, and nothing counted, where one is not as servers write it."""
    data = walk.bolt.data
    if sizes - {REVISION_SIZE, TOMBSTONE_SIZE} or set(map(itemgetter(8), revisions)) != {SEPARATOR}:
        return False
    if {data[start] for start in starts} != {KEY_TAG}:
        return False
    sizes_of_keys = [data[start + 1] for start in starts]
    begins = [start + 2 for start in starts]
    stops = list(map(add, begins, sizes_of_keys))
    if max(sizes_of_keys) > 0x7F or not all(map(le, stops, ends)) or not _decodable(data, stops, ends):
        return False
    keys = [data[begin:stop] for begin, stop in zip(begins, stops, strict=True)]
    stored, dead = walk.stored, walk.dead
    one, before = 1 << REVISION_SHIFT, stored.get
    for key, size in zip(keys, map(sub, ends, starts), strict=True):
        stored[key] = before(key, 0) + one + size
    if TOMBSTONE_SIZE in sizes:
        for revision, key in zip(revisions, keys, strict=True):
            dead.add(key) if len(revision) == TOMBSTONE_SIZE else dead.discard(key)
    elif dead:
        dead.difference_update(keys)
    return True


def _decodable(data: Data, starts: list[int], ends: list[int]) -> bool:
    """Whether what follows the key of each KeyValue is what a server writes; see mvcc.checked_user_key.

    For the most there are three numbers and a value up to the end, whose size is then the two bytes before it; the
    others are gone through one by one.
    """
    values = list(_matches(UP_TO_VALUE, data, starts))
    sizes = [data[value - 2 : value] for value in values]
    wanted = list(map(_size_bytes().get, map(sub, ends, values)))
    if sizes == wanted:
        return True
    unlike = map(ne, sizes, wanted)
    return all(rest_is_decodable(data, *place) for place in compress(zip(starts, ends, strict=True), unlike))


@cache
def _size_bytes() -> dict[int, bytes]:
    """What two bytes lie before a value of that size: tag and size, or the size alone."""
    short = {size: bytes((VALUE_TAG, size)) for size in range(1, 0x80)}
    return short | {size: bytes((size & 0x7F | 0x80, size >> 7)) for size in range(0x80, 0x4000)}


def _matches(pattern: Pattern[bytes], data: Data, starts: list[int]) -> Iterator[int]:
    """Where each match ends; the pattern matches everywhere, as each of its parts may be absent."""
    return map(Match.end, map(pattern.match, repeat(data), starts))  # type: ignore[arg-type]


def _take(walk: Survey, numbers: Sequence[int], overflows: Sequence[int], starts: list[int], ends: list[int]) -> None:
    """Claims the pages and hashes their regions."""
    seen = walk.seen
    for number, overflow in zip(numbers, overflows, strict=True):
        if overflow == 1 and not (seen[number] or seen[number + 1]):
            seen[number] = seen[number + 1] = 1
        elif overflow or seen[number]:
            walk.claim_run(number, number + overflow + 1)
        else:
            seen[number] = 1
    crc, view = walk.crc, memoryview(walk.bolt.data)
    for start, end in zip(starts, ends, strict=True):
        crc = crc32c(view[start:end], crc)
    view.release()
    walk.crc = crc
    walk.hashed += sum(ends) - sum(starts)
