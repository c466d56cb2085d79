"""The end of a StreamCheck: walks the tree over what was kept of its pages, in key order.

A page's own faults were found when it passed. Here they count if the page is in use, and what holds between pages is
compared: each referred to once, keys within the parent's bounds and ascending from page to page, every page accounted
for. Checksums of leaves are put together to etcdutl's hash: a CRC is linear, so that of A and B is that of A carried
over as many zeros as B has bytes, xor that of B.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import add, le, lt

from drtool.core.errors import Unsound
from snapshots import bolt as bbolt
from snapshots import cluster as clusters
from snapshots.bolt import BRANCH, FREELIST, HEADER, LEAF, MAX_DEPTH, NO_FREELIST, Bolt, Bucket, Damaged, Page
from snapshots.crc import crc32c
from snapshots.figures import Fault, Figures, Prefix, Status, Structure
from snapshots.mvcc import TOMBSTONE_SIZE, checked_user_key, compacted, decode_revision
from snapshots.stream.rows import DELETED, END, Pages, Revisions
from snapshots.survey import freelist
from snapshots.tally import MAX_FAULTS
from snapshots.wire import Malformed

ZEROS = memoryview(bytes(1 << 16))
KEYS_AT_ONCE = (1 << 19) // 3
"""User keys are gone through in as many rounds as keep a dict of them below this, where its table would double."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a StreamCheck has when the stream has ended: metas, pages, and whether the trailing hash holds."""

    bolt: Bolt
    pages: Pages
    revisions: Revisions
    trailer: bool | None


@dataclass(slots=True)
class Walk:
    """`leaves` are the rows of the leaves of bucket `key`, in key order; `small` has the pairs of the other buckets."""

    bolt: Bolt
    pages: Pages
    revisions: Revisions
    seen: bytearray
    buckets: dict[bytes, tuple[Bucket, Bolt]] = field(default_factory=dict)
    small: dict[bytes, dict[bytes, bytes]] = field(default_factory=dict)
    leaves: array[int] = field(default_factory=lambda: array("I"))
    faults: list[Fault] = field(default_factory=list)
    crc: int = 0
    pairs: int = 0
    bucket: bytes | None = None
    previous: bytes | None = None
    newest: bytes = b""

    def blame(self, page: int, reason: str) -> None:
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(Fault(page, reason))

    def over(self, image: bytes) -> Bolt:
        """A page's own bytes, to be read as if it were a file."""
        return replace(self.bolt, data=image)


@dataclass(frozen=True, slots=True)
class SmallBuckets:
    """clusters.Records over what the walk kept."""

    name: str
    held: dict[bytes, dict[bytes, bytes]]

    def small(self, name: bytes) -> dict[bytes, bytes]:
        return self.held.get(name, {})

    def place(self, name: bytes) -> str:  # noqa: ARG002 - the pages are gone
        return self.name


def settle(kept: Kept) -> Status:
    """Never raises for what the bytes held."""
    bolt = kept.bolt
    walk = Walk(bolt, kept.pages, kept.revisions, bytearray(bolt.meta.pages))
    walk.seen[0:2] = b"\1\1"
    _descend(walk, bolt.meta.root, None, None)
    for name, (bucket, over) in walk.buckets.items():
        walk.crc, walk.bucket, walk.previous = crc32c(name, walk.crc), name, None
        if bucket.inline is None:
            _descend(walk, bucket.root, None, None)
        else:
            try:
                _take_whole(walk, over, bucket.inline, None, None)
            except Damaged as fault:
                walk.blame(fault.page, fault.reason)
        if name == b"key":
            walk.newest = walk.previous or b""
    _check_freelist(walk)
    return _status(walk, kept.trailer)


def _descend(walk: Walk, number: int, low: bytes | None, high: bytes | None, depth: int = 0) -> None:
    """All keys below page `number` lie in `low` (included) to `high` (excluded)."""
    if not bbolt.FIRST_DATA_PAGE <= number < walk.bolt.meta.pages:
        walk.blame(number, f"referred to, but the file has pages 2 to {walk.bolt.meta.pages - 1}")
    elif number in walk.pages.faults:
        walk.blame(number, walk.pages.faults[number])
    elif row := walk.pages.leaf_at[number]:
        if _claim(walk, number, walk.pages.overflow[row - 1]):
            _take_row(walk, number, row - 1, low, high)
    elif number in walk.pages.whole:
        _whole_page(walk, number, low, high, depth)
    else:
        walk.blame(number, "calls itself another page, or is neither branch nor leaf")


def _whole_page(walk: Walk, number: int, low: bytes | None, high: bytes | None, depth: int) -> None:
    over = walk.over(walk.pages.whole[number])
    _, flags, count, overflow = HEADER.unpack_from(over.data)
    page = Page(number, 0, len(over.data), flags, count)
    if not _claim(walk, number, overflow):
        return
    try:
        if flags == LEAF:
            _take_whole(walk, over, page, low, high)
        elif flags == BRANCH and depth <= MAX_DEPTH:
            keys, children = over.children(page)
            _check_order(walk, number, keys, None, low, high)
            if _together(walk, keys, children, high):
                return
            for child, lowest, highest in zip(children, keys, [*keys[1:], high], strict=True):
                _descend(walk, child, lowest, highest, depth + 1)
        else:
            walk.blame(number, f"flags {flags:#x} where a branch or a leaf belongs, or a tree too deep")
    except Damaged as fault:
        walk.blame(fault.page, fault.reason)


def _claim(walk: Walk, number: int, overflow: int) -> bool:
    run = slice(number, number + overflow + 1)
    twice = walk.seen.find(1, run.start, run.stop)
    if twice >= 0:
        walk.blame(twice, "referred to twice")
        return False
    walk.seen[run] = b"\1" * (overflow + 1)
    return True


def _check_order(
    walk: Walk, number: int, keys: list[bytes], previous: bytes | None, low: bytes | None, high: bytes | None
) -> None:
    for place, key in enumerate(keys):
        if (previous is not None and key <= previous) or not key:
            walk.blame(number, f"key {place} is not after the one before it")
        previous = key
    if keys and low is not None and keys[0] < low:
        walk.blame(number, "its first key lies before its parent's")
    if keys and high is not None and keys[-1] >= high:
        walk.blame(number, "its last key lies beyond its parent's next one")


def _take_row(walk: Walk, number: int, row: int, low: bytes | None, high: bytes | None) -> None:
    """A leaf of revisions, of which only numbers were kept; its inner order was checked when it passed."""
    pages = walk.pages
    count = pages.count[row]
    ends = [pages.low(row), pages.high(row)] if count > 1 else [pages.low(row)]
    _check_order(walk, number, ends, walk.previous, low, high)
    walk.previous = ends[-1]
    walk.crc = _carry(walk.crc, pages.size[row]) ^ pages.crc[row]
    walk.pairs += count
    if walk.bucket == b"key":
        walk.leaves.append(row)
    elif walk.bucket is None:
        walk.blame(number, "holds revisions where the top level's buckets belong")


def _together(walk: Walk, keys: list[bytes], children: tuple[int, ...], high: bytes | None) -> bool:
    """Takes the children of one branch as columns; False, and nothing taken, where not all are sound leaves of
    revisions, in order, within their bounds and not referred to before.
    """
    pages = walk.pages
    if walk.bucket != b"key" or min(children) < bbolt.FIRST_DATA_PAGE or max(children) >= walk.bolt.meta.pages:
        return False
    rows = [row - 1 for row in map(pages.leaf_at.__getitem__, children)]
    if min(rows) < 0 or not pages.faults.keys().isdisjoint(children):
        return False
    edges = pages.ends
    lows = [edges[at : at + END] for at in [2 * END * row for row in rows]]
    lasts = [edges[at - END : at] for at in [2 * END * (row + 1) for row in rows]]
    first, last = pages.low(rows[0]), pages.high(rows[-1])
    if (high is not None and last >= high) or (walk.previous is not None and first <= walk.previous):
        return False
    if not all(map(le, keys, lows)) or not all(map(lt, lasts, keys[1:])) or not all(map(lt, lasts, lows[1:])):
        return False
    if not _claim_all(walk.seen, children, map(pages.overflow.__getitem__, rows)):
        return False
    for row in rows:
        walk.crc = _carry(walk.crc, pages.size[row]) ^ pages.crc[row]
    walk.previous = last
    walk.pairs += sum(map(pages.count.__getitem__, rows))
    walk.leaves.extend(rows)
    return True


def _claim_all(seen: bytearray, numbers: tuple[int, ...], overflows: Iterator[int]) -> bool:
    """False, and nothing claimed, where a page was referred to before."""
    runs: list[slice] = []
    for number, overflow in zip(numbers, overflows, strict=True):
        end = number + overflow + 1
        if seen.find(1, number, end) >= 0:
            for run in runs:
                seen[run] = bytes(run.stop - run.start)
            return False
        run = slice(number, end)
        seen[run] = b"\1" * (end - number)
        runs.append(run)
    return True


def _carry(crc: int, size: int) -> int:
    """What `crc` becomes over `size` zeros."""
    while size > len(ZEROS):
        crc, size = crc32c(ZEROS, crc), size - len(ZEROS)
    return crc32c(ZEROS[:size], crc)


def _take_whole(walk: Walk, over: Bolt, page: Page, low: bytes | None, high: bytes | None) -> None:
    columns = over.columns(page)
    _check_order(walk, page.number, columns.keys, walk.previous, low, high)
    walk.previous = columns.keys[-1] if columns.keys else walk.previous
    for flags, key, start, end in zip(*columns[1:], strict=True):
        if walk.bucket is None:
            if not flags & 1:
                raise over.damaged(page.number, f"{key!r} at the top level is no bucket")
            walk.buckets[key] = (over.bucket_at(page, key, start, end), over)
            continue
        if flags & 1:
            walk.blame(page.number, "a bucket inside a bucket, which etcd never makes")
        value = over.data[start:end]
        walk.crc = crc32c(value, crc32c(key, walk.crc))
        walk.pairs += 1
        if walk.bucket == b"key":
            _one_revision(walk, page, key, value)
        else:
            walk.small.setdefault(walk.bucket, {})[key] = bytes(value)


def _one_revision(walk: Walk, page: Page, key: bytes, value: bytes) -> None:
    """A leaf of bucket `key` that was kept whole: inline, or with something in it that is no revision."""
    try:
        decode_revision(key)
        user_key = checked_user_key(value, 0, len(value))
    except Malformed as wrong:
        walk.blame(page.number, f"bad KeyValue: {wrong}")
        return
    pages = walk.pages
    pages.first.append(len(walk.revisions.key))
    pages.count.append(1)
    walk.leaves.append(len(pages.first) - 1)
    walk.revisions.extend([user_key], [len(value)], [0] if len(key) == TOMBSTONE_SIZE else [])


def _check_freelist(walk: Walk) -> None:
    number = walk.bolt.meta.freelist
    if number == NO_FREELIST:
        return
    image = walk.pages.whole.get(number, b"")
    if not image or HEADER.unpack_from(image)[1] != FREELIST:
        walk.blame(number, walk.pages.faults.get(number, "is not the freelist that belongs here"))
        return
    _, flags, count, overflow = HEADER.unpack_from(image)
    if not _claim(walk, number, overflow):
        return
    try:
        named = freelist(walk.over(image), Page(number, 0, len(image), flags, count))
    except Damaged as fault:
        walk.blame(fault.page, fault.reason)
        return
    free = {page for page, used in enumerate(walk.seen) if not used}
    if len(named) != len(free) or set(named) != free:
        odd = min(set(named) ^ free, default=number)
        walk.blame(odd, "is both in use and in the freelist, or neither, or twice in the freelist")


def _status(walk: Walk, trailer: bool | None) -> Status:
    first, second = walk.bolt.metas
    records = SmallBuckets(walk.bolt.name, walk.small)
    cluster = None
    gone = -1
    try:
        gone = compacted(walk.small.get(b"meta", {}), walk.bolt.name)
        cluster = clusters.read(records)
    except Unsound as fault:
        walk.blame(0, fault.what)
    structure = Structure(tuple(dict.fromkeys(walk.faults)), (first is not None, second is not None))
    version = cluster.storage_version if cluster else ""
    figures = _figures(walk, version, gone) if walk.buckets else None
    return Status(structure, figures, cluster, trailer)


def _figures(walk: Walk, version: str, gone: int) -> Figures:
    prefixes = _prefixes(walk)
    bolt = walk.bolt
    try:
        revision = decode_revision(walk.newest).main if walk.newest else 0
    except Malformed:
        revision = 0
    return Figures(
        hash=walk.crc,
        revision=revision,
        total_key=sum(one.keys for one in prefixes),
        pairs=walk.pairs,
        total_size=bolt.used,
        version=version,
        compacted=gone,
        pages=bolt.meta.pages,
        page_size=bolt.page_size,
        free=walk.seen.count(0),
        prefixes=prefixes,
        rewritten=(),
    )


def _prefixes(walk: Walk) -> tuple[Prefix, ...]:
    """Revisions are gone through in order, as often as needed to keep the set of user keys small."""
    revisions, spans = walk.revisions, _spans(walk)
    prefixes = array("H", _ordered(revisions.prefix, spans))
    rows = Counter(prefixes)
    sizes: Counter[int] = Counter()
    for prefix, size in zip(prefixes, _ordered(revisions.size, spans), strict=True):
        sizes[prefix] += size
    alive: Counter[int] = Counter()
    rounds = len(prefixes) // KEYS_AT_ONCE + 1
    for turn in range(rounds):
        pairs = zip(_ordered(revisions.key, spans), prefixes, strict=True)
        alive.update(_newest(pairs, turn, rounds).values())
    found = [
        Prefix(
            name,
            alive[number],
            rows[number] + rows[number | DELETED],
            sizes[number] + sizes[number | DELETED],
        )
        for name, number in revisions.prefixes.items()
        if number in rows or number | DELETED in rows
    ]
    return tuple(sorted(found, key=lambda one: (-one.size, one.prefix)))


def _newest(pairs: Iterable[tuple[int, int]], turn: int, rounds: int) -> dict[int, int]:
    """User key (its hash) to prefix as its newest revision has them, of one in `rounds` keys."""
    return dict(pairs) if rounds == 1 else {key: prefix for key, prefix in pairs if key % rounds == turn}


def _spans(walk: Walk) -> tuple[array[int], array[int]]:
    """Where the rows of each leaf begin and end, in key order."""
    pages = walk.pages
    begins = array("Q", map(pages.first.__getitem__, walk.leaves))
    return begins, array("Q", map(add, begins, map(pages.count.__getitem__, walk.leaves)))


def _ordered(column: array[int], spans: tuple[array[int], array[int]]) -> Iterator[int]:
    """A column of Revisions in key order."""
    return chain.from_iterable(map(column.__getitem__, map(slice, *spans)))
