"""Checks a snapshot while it streams past: trailing hash, structure, figures, in little memory and without a disk.

The stream is the file's pages in order, so each page is checked alone when it passes: bounds, order of keys, KeyValues.
What one page says of others is settled at the end, when all branches are known (see tree). A page that nothing
refers to is free and says nothing, whatever it holds, so a fault counts only where the page is in use.

    check = StreamCheck("snapshot")
    for chunk in stream: check.feed(chunk)
    status = check.finish()

Memory: about 14 bytes a revision and 60 a leaf, and within MEMORY the branches, the leaves of small buckets and runs of
pages that are still arriving.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from operator import sub

from drtool.core.errors import Unsound
from drtool.host.later import Begin, at_once
from snapshots import bolt as bbolt
from snapshots import wire
from snapshots.bolt import (
    BRANCH,
    FREELIST,
    HEADER,
    HEADER_SIZE,
    LEAF,
    SECTOR,
    Bolt,
    Columns,
    Damaged,
    Meta,
    Page,
)
from snapshots.crc import crc32c
from snapshots.figures import Fault, Status, Structure
from snapshots.mvcc import REVISION_SIZE, TOMBSTONE_SIZE, checked_user_key
from snapshots.stream.leaves import leaves, take
from snapshots.stream.rows import MEMORY, NOTHING, Pages, Revisions, filled
from snapshots.stream.tree import Kept, settle
from snapshots.trailer import Trailer

BATCH = 1 << 20
"""Bytes that are gathered before their pages are looked at together."""
BESIDE = 1 << 18
"""Revisions up to which a second copy of all that is kept, in a process beside this one, is worth the time it saves."""
HEAD_LIMIT = 1 << 20
"""Both meta pages lie within it for every page size that a machine has (64 KiB and less)."""


class StreamCheck:
    """Feed it the snapshot's bytes as they come; `finish` once at the end. Never raises for what the bytes hold."""

    def __init__(self, name: str = "snapshot") -> None:
        self.name = name
        self.meta: Meta | None = None
        self.metas: tuple[Meta | None, Meta | None] = (None, None)
        self.revisions = Revisions()
        self.pages = Pages(array("I"))
        self._ending = Trailer()
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._position = 0
        self._arriving: list[tuple[int, int, bytearray]] = []
        self._arriving_size = 0

    def feed(self, chunk: bytes | memoryview) -> None:
        self._ending.feed(chunk)
        if self.meta is not None and self._position >= self.meta.pages:
            return
        self._waiting.append(bytes(chunk))
        self._waiting_size += len(chunk)
        if self._waiting_size >= BATCH:
            self._look()

    @property
    def size(self) -> int:
        return self._ending.size

    @property
    def trailer(self) -> bool | None:
        """Whether the sha256 at the end is that of all before it; None where the length says that there is none."""
        return self._ending.holds

    @property
    def sha256(self) -> str:
        """Hex, of everything but the last 32 bytes."""
        return self._ending.before

    @property
    def whole_sha256(self) -> str:
        """Hex, of every byte that was fed."""
        return self._ending.whole

    def finish(self) -> Status:
        """What `figures.status` would say of the file, but for the most rewritten keys, whose names are not kept."""
        return self.finishing(at_once(settle))()

    def finishing(self, begin: Begin[Kept, Status]) -> Callable[[], Status]:
        """As `finish`, where `begin` has what is kept of the pages settled beside other work, unless that is much."""
        self._look(final=True)
        whole = self.meta is not None and self._position >= self.meta.pages
        if self.meta is None or not whole:
            where = self._position
            reason = f"the stream ended before it: {self.size} bytes" if self.meta else "neither meta page is valid"
            broken = Status(Structure((Fault(where, reason),), self._valid), None, None, self.trailer)
            return lambda: broken
        if len(self.revisions.key) > BESIDE:
            begin = at_once(settle)
        return begin(Kept(self.bolt, self.pages, self.revisions, self.trailer))

    @property
    def bolt(self) -> Bolt:
        """The stream's name and metas, without data, for messages and bounds. Raises Unsound before they came."""
        if self.meta is None:
            raise Unsound(f"{self.name}: neither of the two meta pages (pages 0 and 1) is valid")
        return Bolt(self.name, b"", self.size, self.meta, self.metas)

    @property
    def _valid(self) -> tuple[bool, bool]:
        return self.metas[0] is not None, self.metas[1] is not None

    def _look(self, final: bool = False) -> None:
        """Takes the pages that have come; what is left of them, a run's beginning or a page's, waits for the rest."""
        data = b"".join(self._waiting)
        if self.meta is not None or self._begin(data, final):
            data = self._consume(data, final)
        elif len(data) > HEAD_LIMIT:
            data = b""
        self._waiting = [data] if data else []  # a chunk that comes alone is joined without a copy
        self._waiting_size = len(data)

    def _begin(self, data: bytes, final: bool) -> bool:
        """Reads the metas once both are there. The number of pages is believed only up to what has been fed."""
        first = bbolt.read_metas(data[: bbolt.PAGE_SIZES[-1] + SECTOR]) if data else (None, None)
        known = first[0] or first[1]
        if known is None or (len(data) < 2 * known.page_size and not final):
            return False
        valid = [meta for meta in first if meta is not None]
        self.metas, self.meta = first, max(valid, key=lambda one: one.txid)
        return True

    def _consume(self, data: bytes, final: bool) -> bytes:
        """What is left."""
        assert self.meta is not None  # noqa: S101 - _begin came first
        size = self.meta.page_size
        while whole := min(len(data) // size, self.meta.pages - self._position):
            data = data[self._batch(data, whole, size) * size :]
            if len(data) < BATCH and not final:
                break
        return data

    def _batch(self, data: bytes, whole: int, size: int) -> int:
        """How many of the pages were taken, at least one."""
        first = self._position
        found, other, count = leaves(data, first, whole, size) if not self._arriving else ([], (), 0)
        self.pages.leaf_at.extend(array("I", bytes(4 * (count or whole))))
        if not count or (found and not take(self.pages, self.revisions, data, size, found)):
            count = count or whole
            other = range(count)
        for place in other:
            self._page(first + place, data, place * size)
        self._position += count
        return count

    def _page(self, number: int, data: bytes, at: int) -> None:
        assert self.meta is not None  # noqa: S101 - _begin came first
        size = self.meta.page_size
        if self._arriving:
            self._arrive(data[at : at + size])
        identity, flags, count, overflow = HEADER.unpack_from(data, at)
        if number < bbolt.FIRST_DATA_PAGE or identity != number or flags not in (LEAF, BRANCH, FREELIST):
            return
        image = data[at : at + size]
        if overflow == 0:
            self._examine(Page(number, 0, size, flags, count), image)
        elif overflow >= self.meta.pages - number:
            self.pages.blame(number, f"its {overflow} overflow pages reach beyond the end of the file")
        elif self._arriving_size + (overflow + 1) * size > MEMORY:
            self.pages.blame(number, f"its run of {overflow + 1} pages is more than this check keeps in memory")
        else:
            self._arriving_size += (overflow + 1) * size
            self._arriving.append((number, overflow, bytearray(image)))

    def _arrive(self, image: bytes) -> None:
        """Adds a page to the runs that it may belong to; which of them are in use is known only at the end."""
        size = len(image)
        waiting = []
        for number, overflow, run in self._arriving:
            run += image
            if len(run) == (overflow + 1) * size:
                self._arriving_size -= len(run)
                _, flags, count, _ = HEADER.unpack_from(run)
                self._examine(Page(number, 0, len(run), flags, count), bytes(run))
            else:
                waiting.append((number, overflow, run))
        self._arriving = waiting

    def _examine(self, page: Page, image: bytes) -> None:
        """One complete run. Nothing of it is kept but what the end needs."""
        bolt = Bolt(self.name, image, len(image), *self._metas_of_run())
        try:
            if HEADER_SIZE + page.elements * 16 > page.end and page.flags != FREELIST:
                raise bolt.damaged(page.number, f"{page.elements} elements do not fit into {page.end} bytes")
            if page.flags == BRANCH:
                bolt.children(page)
            if page.flags != LEAF:
                self.pages.keep(page.number, image)
            else:
                self._leaf(page, bolt.columns(page), image)
        except Damaged as fault:
            self.pages.blame(page.number, fault.reason)

    def _metas_of_run(self) -> tuple[Meta, tuple[Meta | None, Meta | None]]:
        assert self.meta is not None  # noqa: S101 - _begin came first
        return self.meta, self.metas

    def _leaf(self, page: Page, columns: Columns, image: bytes) -> None:
        keys = columns.keys
        if not keys or not all(map(_is_revision, keys)) or any(columns.flags):
            self.pages.keep(page.number, image)
            return
        pages, revisions = self.pages, self.revisions
        if any(map(bytes.__ge__, keys, keys[1:])):
            pages.blame(page.number, "its keys are not in order")
            return
        try:
            found = [
                checked_user_key(image, start, end) for start, end in zip(columns.starts, columns.ends, strict=True)
            ]
        except wire.Malformed as wrong:
            pages.blame(page.number, f"bad KeyValue: {wrong}")
            return
        sizes = list(map(sub, columns.ends, columns.starts))
        crc = NOTHING
        for revision, start, end in zip(keys, columns.starts, columns.ends, strict=True):
            crc = crc32c(image[start:end], crc32c(revision, crc))
        lengths = list(map(len, keys))
        pages.leaf_at[page.number] = len(pages.first) + 1
        pages.overflow.append(len(image) // self.bolt.page_size - 1)
        pages.first.append(len(revisions.key))
        pages.count.append(len(keys))
        pages.crc.append(crc ^ NOTHING)
        pages.size.append(sum(lengths) + sum(sizes))
        pages.ends += filled((keys[0], keys[-1]))
        revisions.extend(found, sizes, [place for place, size in enumerate(lengths) if size == TOMBSTONE_SIZE])


def _is_revision(key: bytes) -> bool:
    size = len(key)
    return key[8:9] == b"_" and (size == REVISION_SIZE or (size == TOMBSTONE_SIZE and key[17] == ord("t")))
