"""One pass over a whole db: structure check, etcdutl's hash, and what figures are counted from.

The checks are those of bbolt's Tx.Check (tx_check.go), and the bounds that it takes on trust. The leaves of one branch
page are taken together (leafcolumns); what does not look as servers write it is gone through again pair by pair here,
which either explains the fault or finds an unusual but lawful page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from operator import lt
from struct import Struct
from typing import Any, TypeAlias

from drtool.core.events import Listener, Progress, silent
from drtool.host.beside import beside, pieces, possible
from snapshots import wire
from snapshots.bolt import (
    BRANCH,
    FREELIST,
    HEADER_SIZE,
    LEAF,
    MAX_DEPTH,
    NO_FREELIST,
    Bolt,
    Bucket,
    Damaged,
    Page,
)
from snapshots.crc import combine, crc32c
from snapshots.leafcolumns import take_leaves
from snapshots.mvcc import (
    TOMBSTONE_SIZE,
    checked_user_key,
    decode_revision,
)
from snapshots.tally import Survey
from snapshots.totals import REVISION_SHIFT, Totals, together

WORTH_CHILD = 64 << 20
REPORT_EVERY = 64
MOST_SHARES = 512
"""The pass is handed out in as many parts or fewer; a pipe holds a byte for each."""
ENOUGH_SHARES = 64
Part: TypeAlias = tuple[int, bytes, "bytes | None"]
"""A page, its lowest key, and the one that all keys below it come before."""


def survey(bolt: Bolt, listener: Listener = silent) -> Survey:
    """Raises Damaged at the first fault."""
    return _pass(Survey(bolt, listener, bytearray(bolt.meta.pages)))


def survey_beside(
    bolt: Bolt, trailer: Callable[[], bool | None], listener: Listener = silent, worth: int = WORTH_CHILD
) -> tuple[Survey, bool | None]:
    """The same and the outcome of `trailer`, on two cores where the file has `worth` bytes or more.

    A child process does `trailer`, and then a share of what is left of bucket `key`. Raises Damaged as `survey` does.
    """
    if bolt.used < worth or not possible():
        return survey(bolt, listener), trailer()
    walk = Survey(bolt, listener, bytearray(bolt.meta.pages), beside=trailer)
    try:
        _pass(walk)
    except Damaged:
        walk = survey(bolt, listener)  # names the first fault
    return walk, walk.trailer if walk.both else trailer()


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
        walk.claim(page)
        _order_only(walk, page, low, high) if top else _slowly(walk, page, low, high)
        return
    if page.flags != BRANCH:
        raise walk.bolt.damaged(number, f"flags {page.flags:#x} where a branch or a leaf belongs")
    if depth > MAX_DEPTH:
        raise walk.bolt.damaged(number, "the tree is deeper than any real one")
    children, keys, highs = _below(walk, page, low, high)
    if walk.beside and walk.in_key and depth == 0:
        _shared(walk, list(zip(children, keys, highs, strict=True)), walk.beside)
        return
    if top or walk.faults is not None or not take_leaves(walk, children, keys, highs):
        for child, lowest, highest in zip(children, keys, highs, strict=True):
            try:
                _descend(walk, child, lowest, highest, depth + 1, top)
            except Damaged as fault:
                walk.blame(fault)
    _report(walk)


def _below(
    walk: Survey, page: Page, low: bytes | None, high: bytes | None
) -> tuple[tuple[int, ...], list[bytes], list[bytes | None]]:
    """A branch page, claimed: the pages below it, and for each the bounds of its keys."""
    walk.claim(page)
    keys, children = walk.bolt.children(page)
    _check_order(walk, page, keys, None, low, high)
    return children, keys, [*keys[1:], high]


def _shared(walk: Survey, parts: list[Part], trailer: Callable[[], bool | None]) -> None:
    """The bounds of the parts keep the order between them, so that any run of them is a pass of its own."""
    depth = 1
    while len(parts) < ENOUGH_SHARES and (deeper := _deeper(walk, parts)) != parts:
        parts, depth = deeper, depth + 1
    step = -(-len(parts) // MOST_SHARES)
    shares = [parts[at : at + step] for at in range(0, len(parts), step)]
    afterwards = len(shares) // 8  # what this process has to do after its share, in the time that shares take
    ours = 0

    def beside_us() -> tuple[Any, ...]:
        held = trailer()
        rest = Survey(walk.bolt, silent, bytearray(walk.bolt.meta.pages), in_key=True)
        for share in shares[ours or len(shares) - left.share(afterwards) :]:  # `ours` where the child has failed
            _each(rest, share, depth)
        passed = rest.crc, rest.hashed, rest.pairs, rest.previous, bytes(rest.seen)
        return held, *passed, rest.dead, rest.stored, tuple(rest.totals())

    with pieces(len(shares)) as left, beside(beside_us) as result:
        while left.one():
            _each(walk, shares[ours], depth)
            ours += 1
        walk.bolt.let_go()  # while the child is at work, not at the end
        first = walk.totals()
        walk.trailer, crc, hashed, pairs, previous, seen, dead, stored, second = result()
        # while the child ends, which has a large mapping to give back
        walk.both = together(walk.stored, stored, first, Totals(*second))
    if int.from_bytes(seen) & int.from_bytes(walk.seen):
        raise walk.bolt.damaged(0, "a page is referred to twice")
    walk.seen = bytearray((int.from_bytes(seen) | int.from_bytes(walk.seen)).to_bytes(len(seen)))
    walk.crc, walk.hashed, walk.pairs = combine(walk.crc, crc, hashed), walk.hashed + hashed, walk.pairs + pairs
    walk.previous = previous or walk.previous
    walk.dead = (walk.dead - stored.keys()) | dead


def _deeper(walk: Survey, parts: list[Part]) -> list[Part]:
    found: list[Part] = []
    for part in parts:
        page = walk.bolt.page(part[0])
        found += zip(*_below(walk, page, *part[1:]), strict=True) if page.flags == BRANCH else [part]
    return found


def _each(walk: Survey, share: list[Part], depth: int) -> None:
    for child, low, high in share:
        _descend(walk, child, low, high, depth)


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
    walk.claim(page)
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
