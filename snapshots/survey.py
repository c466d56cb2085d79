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

from drtool.core.events import Listener, Progress, silent
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
from snapshots.crc import crc32c
from snapshots.leafcolumns import take_leaves
from snapshots.mvcc import (
    TOMBSTONE_SIZE,
    checked_user_key,
    decode_revision,
)
from snapshots.tally import Survey
from snapshots.totals import REVISION_SHIFT

REPORT_EVERY = 64


def survey(bolt: Bolt, listener: Listener = silent) -> Survey:
    """Raises Damaged at the first fault."""
    return go_through(Survey(bolt, listener, bytearray(bolt.meta.pages)))


def salvage(bolt: Bolt, listener: Listener = silent) -> Survey:
    """What a damaged file still tells: pages at fault are left out, and listed in `faults`. Pair by pair, so slower."""
    return go_through(Survey(bolt, listener, bytearray(bolt.meta.pages), faults=[]))


def go_through(walk: Survey, key: Callable[[int], None] | None = None) -> Survey:
    """All buckets and the freelist. `key` takes the tree of bucket `key`, by far the largest, in a way of its own."""
    walk.seen[0:2] = b"\1\1"
    for name, bucket in _top(walk).items():
        walk.crc = crc32c(name, walk.crc)
        walk.in_key, walk.previous = name == b"key", None
        try:
            if bucket.inline is not None:
                _slowly(walk, bucket.inline, None, None)
            elif walk.in_key and key is not None:
                key(bucket.root)
            else:
                descend(walk, bucket.root, None, None)
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
    descend(walk, walk.bolt.meta.root, None, None, top=True)
    return walk.bolt.buckets()


def descend(
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
    children, keys, highs = below(walk, page, low, high)
    if top or walk.faults is not None or not take_leaves(walk, children, keys, highs):
        for child, lowest, highest in zip(children, keys, highs, strict=True):
            try:
                descend(walk, child, lowest, highest, depth + 1, top)
            except Damaged as fault:
                walk.blame(fault)
    _report(walk)


def below(
    walk: Survey, page: Page, low: bytes | None, high: bytes | None
) -> tuple[tuple[int, ...], list[bytes], list[bytes | None]]:
    """A branch page, claimed: the pages below it, and for each the bounds of its keys."""
    walk.claim(page)
    keys, children = walk.bolt.children(page)
    _check_order(walk, page, keys, None, low, high)
    return children, keys, [*keys[1:], high]


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
