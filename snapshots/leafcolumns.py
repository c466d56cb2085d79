"""Takes the leaves below one branch page into a survey together: what makes it fast.

They are read as columns (leafgroups), and each page's pairs, which bbolt writes back to back, go into the checksum as
one region. Nothing is taken where anything is unusual: survey then goes pair by pair.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from operator import itemgetter, le, lt, sub

from snapshots.crc import crc32c
from snapshots.leafgroups import Group, group
from snapshots.mvcc import REVISION_SIZE, TOMBSTONE_SIZE, checked_user_keys
from snapshots.tally import Survey
from snapshots.totals import REVISION_SHIFT
from snapshots.wire import Malformed

SEPARATOR = ord("_")
REVISION = 1 << REVISION_SHIFT


def take_leaves(walk: Survey, numbers: tuple[int, ...], lows: list[bytes], highs: list[bytes | None]) -> bool:
    """Takes the leaves of one branch as columns. False, and nothing taken, where anything looks unusual."""
    found = group(walk.bolt, numbers)
    if found is None or not _ordered(walk.previous, found.keys, found.places, lows, highs):
        return False
    if walk.in_key and not _count(walk, found.keys, found.starts, found.ends):
        return False
    _take(walk, found)
    return True


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


def _count(walk: Survey, revisions: list[bytes], starts: list[int], ends: list[int]) -> bool:
    """Counts the user keys of as many KeyValues; False, and nothing counted, where one is not as servers write it."""
    data, sizes = walk.bolt.data, set(map(len, revisions))
    if sizes - {REVISION_SIZE, TOMBSTONE_SIZE} or set(map(itemgetter(8), revisions)) != {SEPARATOR}:
        return False
    if TOMBSTONE_SIZE in sizes and {key[17:] for key in revisions} - {b"", b"t"}:
        return False
    try:
        keys = checked_user_keys(data, starts, ends)
    except Malformed:
        return False
    stored, dead = walk.stored, walk.dead
    before, once = stored.get, _once().get
    for key, size in zip(keys, map(sub, ends, starts), strict=True):
        held, count = before(key, 0), once(size) or REVISION + size
        stored[key] = held + count if held else count
    if TOMBSTONE_SIZE in sizes:
        for revision, key in zip(revisions, keys, strict=True):
            dead.add(key) if len(revision) == TOMBSTONE_SIZE else dead.discard(key)
    elif dead:
        dead.difference_update(keys)
    return True


@cache
def _once() -> dict[int, int]:
    """What `stored` counts for one revision of that size: the same objects for all keys, which are many."""
    return {size: REVISION + size for size in range(0x4000)}


def _take(walk: Survey, found: Group) -> None:
    """Claims the pages and hashes their regions."""
    seen = walk.seen
    for number, overflow in zip(found.numbers, found.overflows, strict=True):
        if overflow == 1 and not (seen[number] or seen[number + 1]):
            seen[number] = seen[number + 1] = 1
        elif overflow or seen[number]:
            walk.claim_run(number, number + overflow + 1)
        else:
            seen[number] = 1
    crc, view = walk.crc, memoryview(walk.bolt.data)
    for start, end in zip(found.floors, found.lasts, strict=True):
        crc = crc32c(view[start:end], crc)
    view.release()
    walk.crc = crc
    walk.hashed += sum(found.lasts) - sum(found.floors)
    walk.pairs += len(found.keys)
    walk.previous = found.keys[-1]
