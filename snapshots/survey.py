"""One pass over a whole db: structure check, etcdutl's hash, and what figures are counted from.

The checks are those of bbolt's Tx.Check (tx_check.go), and the bounds that it takes on trust. The leaves below one
branch page are taken together: their element tables are read in one go and compared as columns, and each page's pairs,
which bbolt writes back to back, go into the checksum as one region. What does not look exactly like that is gone
through again pair by pair, which either explains the fault or finds an unusual but lawful page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import accumulate, chain, compress, islice, repeat
from operator import add, eq, itemgetter, le, lt, ne, sub
from re import Match, Pattern
from struct import Struct

from crc32c import crc32c

from drtool.core.events import Listener, Progress, silent
from snapshots import wire
from snapshots.beside import beside, possible
from snapshots.bolt import (
    BRANCH,
    ELEMENT_SIZE,
    FREELIST,
    HEADER_SIZE,
    LEAF,
    MAX_DEPTH,
    NO_FREELIST,
    Bolt,
    Bucket,
    Damaged,
    Data,
    Page,
    leaf_table,
)
from snapshots.crc import combine
from snapshots.mvcc import (
    KEY_TAG,
    REVISION_SIZE,
    TOMBSTONE_SIZE,
    UP_TO_VALUE,
    VALUE_TAG,
    checked_user_key,
    decode_revision,
    rest_is_decodable,
)

REVISION_SHIFT = 40
"""`stored` counts a key's revisions above this bit and their bytes below it."""
SEPARATOR = ord("_")
GROUP_LIMIT = 1 << 16
WORTH_HALVES = 64 << 20
REPORT_EVERY = 64
MAX_FAULTS = 100


@dataclass(slots=True)
class Survey:
    """What the pass gathers. `stored` has every user key with revisions << 40 | bytes, `dead` the deleted ones.

    `crc` is etcdutl's hash, `newest` the last key of bucket `key`; `seen` has a 1 for every page in use.
    `faults` is None where the first fault ends the pass, else what has been found and stepped over.
    """

    bolt: Bolt
    listener: Listener
    seen: bytearray
    crc: int = 0
    hashed: int = 0
    pairs: int = 0
    newest: bytes = b""
    stored: dict[bytes, int] = field(default_factory=dict)
    dead: set[bytes] = field(default_factory=set)
    in_key: bool = False
    previous: bytes | None = None
    branches: int = 0
    faults: list[Damaged] | None = None
    halves: bool = False

    @property
    def free(self) -> int:
        """Pages that hold nothing (the two metas count as used)."""
        return self.seen.count(0)

    def blame(self, fault: Damaged) -> None:
        """Ends the pass, or notes the fault and lets it go on; what is noted is bounded."""
        if self.faults is None:
            raise fault
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(fault)


def survey(bolt: Bolt, listener: Listener = silent) -> Survey:
    """Raises Damaged at the first fault."""
    return _pass(Survey(bolt, listener, bytearray(bolt.meta.pages)))


def survey_in_halves(bolt: Bolt, listener: Listener = silent, worth: int = WORTH_HALVES) -> Survey:
    """The same on two cores: a child process takes the second half of bucket `key` of a file of `worth` bytes or more.

    Raises Damaged as `survey` does.
    """
    if bolt.used < worth or not possible():
        return survey(bolt, listener)
    try:
        return _pass(Survey(bolt, listener, bytearray(bolt.meta.pages), halves=True))
    except Damaged:
        return survey(bolt, listener)  # names the first fault


def salvage(bolt: Bolt, listener: Listener = silent) -> Survey:
    """What a damaged file still tells: pages at fault are left out, and listed in `faults`. Pair by pair, so slower."""
    return _pass(Survey(bolt, listener, bytearray(bolt.meta.pages), faults=[]))


def _pass(walk: Survey) -> Survey:
    walk.seen[0:2] = b"\1\1"
    for name, bucket in _top(walk).items():
        walk.crc = crc32c(name, walk.crc)
        walk.in_key, walk.previous = name == b"key", None
        try:
            if bucket.inline is not None:
                _slowly(walk, bucket.inline, None, None)
            else:
                _descend(walk, bucket.root, None, None)
        except Damaged as fault:
            walk.blame(fault)
        if walk.in_key:
            walk.newest = walk.previous or b""
    try:
        _check_freelist(walk)
    except Damaged as fault:
        walk.blame(fault)
    return walk


def _top(walk: Survey) -> dict[bytes, Bucket]:
    """The top-level buckets; their tree is checked like any other, but what it holds is in no hash."""
    _descend(walk, walk.bolt.meta.root, None, None, top=True)
    return walk.bolt.buckets()


def _descend(
    walk: Survey, number: int, low: bytes | None, high: bytes | None, depth: int = 0, top: bool = False
) -> None:
    """All keys below page `number` lie in `low` (included) to `high` (excluded)."""
    page = walk.bolt.page(number)
    if page.flags == LEAF:
        _claim(walk, page)
        _order_only(walk, page, low, high) if top else _slowly(walk, page, low, high)
        return
    if page.flags != BRANCH:
        raise walk.bolt.damaged(number, f"flags {page.flags:#x} where a branch or a leaf belongs")
    if depth > MAX_DEPTH:
        raise walk.bolt.damaged(number, "the tree is deeper than any real one")
    _claim(walk, page)
    keys, children = walk.bolt.children(page)
    _check_order(walk, page, keys, None, low, high)
    highs = [*keys[1:], high]
    if walk.halves and walk.in_key and depth == 0 and len(children) > 1:
        _in_halves(walk, list(zip(children, keys, highs, strict=True)))
        return
    if top or walk.faults is not None or not _together(walk, children, keys, highs):
        for child, lowest, highest in zip(children, keys, highs, strict=True):
            try:
                _descend(walk, child, lowest, highest, depth + 1, top)
            except Damaged as fault:
                walk.blame(fault)
    _report(walk)


def _in_halves(walk: Survey, children: list[tuple[int, bytes, bytes | None]]) -> None:
    """The bounds of the children keep the order between the halves, so that each is a pass of its own."""
    middle = len(children) // 2

    def second() -> tuple[int, int, int, bytes | None, bytes, dict[bytes, int], set[bytes]]:
        half = Survey(walk.bolt, silent, bytearray(walk.bolt.meta.pages), in_key=True)
        for child, low, high in children[middle:]:
            _descend(half, child, low, high, 1)
        return half.crc, half.hashed, half.pairs, half.previous, bytes(half.seen), half.stored, half.dead

    with beside(second) as result:
        for child, low, high in children[:middle]:
            _descend(walk, child, low, high, 1)
        crc, hashed, pairs, previous, seen, stored, dead = result()
    if int.from_bytes(seen) & int.from_bytes(walk.seen):
        raise walk.bolt.damaged(0, "a page is referred to twice")
    walk.seen = bytearray((int.from_bytes(seen) | int.from_bytes(walk.seen)).to_bytes(len(seen)))
    walk.crc, walk.hashed, walk.pairs = combine(walk.crc, crc, hashed), walk.hashed + hashed, walk.pairs + pairs
    walk.previous = previous or walk.previous
    walk.dead = (walk.dead - stored.keys()) | dead
    before = walk.stored.get
    for key, count in stored.items():
        walk.stored[key] = before(key, 0) + count


def _claim(walk: Survey, page: Page) -> None:
    _claim_run(walk, page.number, page.end // walk.bolt.page_size)


def _claim_run(walk: Survey, first: int, end: int) -> None:
    twice = walk.seen.find(1, first, end)
    if twice >= 0:
        raise walk.bolt.damaged(twice, "referred to twice")
    walk.seen[first:end] = b"\1" * (end - first)


def _check_order(
    walk: Survey, page: Page, keys: Sequence[bytes], previous: bytes | None, low: bytes | None, high: bytes | None
) -> None:
    if not keys:
        return
    if not (all(map(lt, keys, islice(keys, 1, None))) and keys[0] and (previous is None or previous < keys[0])):
        _blame_disorder(walk, page, keys, previous)
    if low is not None and keys[0] < low:
        walk.blame(walk.bolt.damaged(page.number, "its first key lies before its parent's"))
    if high is not None and keys[-1] >= high:
        walk.blame(walk.bolt.damaged(page.number, "its last key lies beyond its parent's next one"))


def _blame_disorder(walk: Survey, page: Page, keys: Sequence[bytes], previous: bytes | None) -> None:
    for place, key in enumerate(keys):
        if previous is not None and key <= previous:
            walk.blame(walk.bolt.damaged(page.number, f"key {place} is not after the one before it"))
        if not key:
            walk.blame(walk.bolt.damaged(page.number, f"key {place} is empty"))
        previous = key


def _order_only(walk: Survey, page: Page, low: bytes | None, high: bytes | None) -> None:
    keys = walk.bolt.columns(page).keys
    _check_order(walk, page, keys, walk.previous, low, high)
    walk.previous = keys[-1] if keys else walk.previous


def _together(walk: Survey, numbers: tuple[int, ...], lows: list[bytes], highs: list[bytes | None]) -> bool:
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
            _claim_run(walk, number, number + overflow + 1)
        else:
            seen[number] = 1
    crc, view = walk.crc, memoryview(walk.bolt.data)
    for start, end in zip(starts, ends, strict=True):
        crc = crc32c(view[start:end], crc)
    view.release()
    walk.crc = crc
    walk.hashed += sum(ends) - sum(starts)


def _slowly(walk: Survey, page: Page, low: bytes | None, high: bytes | None) -> None:
    """One claimed leaf, pair by pair."""
    bolt = walk.bolt
    columns = bolt.columns(page)
    _check_order(walk, page, columns.keys, walk.previous, low, high)
    for place, flags in enumerate(columns.flags):
        if flags & 1:
            fault = bolt.damaged(page.number, f"element {place} is a bucket inside a bucket, which etcd never makes")
            walk.blame(fault)
    for key, start, end in zip(columns.keys, columns.starts, columns.ends, strict=True):
        value = bolt.data[start:end]
        walk.crc = crc32c(value, crc32c(key, walk.crc))
        walk.hashed += len(key) + len(value)
        if walk.in_key:
            _count_one(walk, page, key, value)
    walk.pairs += len(columns.keys)
    walk.previous = columns.keys[-1] if columns.keys else walk.previous


def _count_one(walk: Survey, page: Page, revision: bytes, value: bytes) -> None:
    try:
        decode_revision(revision)
        key = checked_user_key(value, 0, len(value))
    except wire.Malformed as wrong:
        walk.blame(walk.bolt.damaged(page.number, f"bad KeyValue: {wrong}"))
        return
    walk.stored[key] = walk.stored.get(key, 0) + (1 << REVISION_SHIFT) + len(value)
    walk.dead.add(key) if len(revision) == TOMBSTONE_SIZE else walk.dead.discard(key)


def _check_freelist(walk: Survey) -> None:
    """A stored freelist names exactly the pages that nothing refers to. etcd stores none (NoFreelistSync)."""
    bolt = walk.bolt
    number = bolt.meta.freelist
    if number == NO_FREELIST:
        return
    page = bolt.page(number)
    if page.flags != FREELIST:
        raise bolt.damaged(number, f"flags {page.flags:#x} where the freelist belongs")
    _claim(walk, page)
    for free in freelist(bolt, page):
        if not 2 <= free < bolt.meta.pages:
            raise bolt.damaged(number, f"the freelist names page {free}, which the file has not")
        if walk.seen[free]:
            raise bolt.damaged(free, "is in use and in the freelist, or twice in the freelist")
        walk.seen[free] = 2
    lost = walk.seen.find(0)
    if lost >= 0:
        raise bolt.damaged(lost, "neither in use nor in the freelist")
    walk.seen = walk.seen.replace(b"\2", b"\0")


def freelist(bolt: Bolt, page: Page) -> tuple[int, ...]:
    """The ids on a freelist page; 65,535 and more are counted by the first id (freelist.go)."""
    start, count = page.offset + HEADER_SIZE, page.elements
    if count == 0xFFFF:
        count = int.from_bytes(bolt.data[start : start + 8], "little")
        start += 8
    if start + 8 * count > page.end:
        raise bolt.damaged(page.number, f"{count} ids of free pages do not fit into the freelist")
    return Struct(f"<{count}Q").unpack_from(bolt.data, start)


def _report(walk: Survey) -> None:
    """Tells progress by pages in use, after every few branch pages."""
    walk.branches += 1
    if walk.branches % REPORT_EVERY == 0:
        size = walk.bolt.page_size
        walk.listener(Progress("check", walk.seen.count(1) * size, walk.bolt.used))
