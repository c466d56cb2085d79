"""Reads a bbolt file: metas, pages, buckets, pairs. Never writes; any bytes give pairs or `Damaged`.

The layout is bbolt's internal/common/{page,meta,bucket,inode}.go (1.3 to 1.5, little-endian):
page = header `id u64 | flags u16 | count u16 | overflow u32`, then `count` elements of 16 bytes, then their data.
A snapshot is such a file with the sha256 of all before it as its last 32 bytes.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from operator import add
from pathlib import Path
from struct import Struct
from typing import NamedTuple, TypeAlias

from drtool.core.errors import NotFound, Unsound
from drtool.core.events import Listener, Progress, silent

BRANCH, LEAF, META, FREELIST = 0x01, 0x02, 0x04, 0x10
MAGIC, VERSION = 0xED0CDAED, 2
NO_FREELIST = 0xFFFF_FFFF_FFFF_FFFF
HEADER = Struct("<QHHI")
META_STRUCT = Struct("<IIIIQQQQQQ")
BUCKET = Struct("<QQ")
HEADER_SIZE, ELEMENT_SIZE, TRAILER_SIZE = 16, 16, 32
SECTOR = 512
FIRST_DATA_PAGE = 2
PAGE_SIZES = tuple(1024 << i for i in range(15))
MAX_DEPTH = 64
CHUNK = 16 << 20

Data: TypeAlias = mmap.mmap | bytes


class Damaged(Unsound):
    """The file contradicts itself at a page. `page` is its number."""

    def __init__(self, name: str, page: int, what: str) -> None:
        super().__init__(f"{name}: page {page}: {what}", "the file is damaged: use another copy or an older backup")
        self.page = page
        self.reason = what


class Meta(NamedTuple):
    """One of the two meta pages. `pages` is the high water mark: the number of pages in use or free."""

    page_size: int
    root: int
    freelist: int
    pages: int
    txid: int


class Page(NamedTuple):
    """A page run: `offset` of its header and `end` of its bytes in the file; `number` as a message names it."""

    number: int
    offset: int
    end: int
    flags: int
    elements: int


class Bucket(NamedTuple):
    """A bucket: its root page, or `inline`, a leaf image inside the page that names it."""

    name: bytes
    root: int
    sequence: int
    inline: Page | None


class Columns(NamedTuple):
    """The elements of one leaf: `starts[i]:ends[i]` is the value of `keys[i]` in the file."""

    page: Page
    flags: tuple[int, ...]
    keys: list[bytes]
    starts: list[int]
    ends: list[int]


@dataclass(frozen=True, slots=True)
class Bolt:
    """An open file. `metas` are the two meta pages, None where one is not valid; `meta` is the one in force."""

    name: str
    data: Data = field(repr=False)
    size: int
    meta: Meta
    metas: tuple[Meta | None, Meta | None]

    @property
    def page_size(self) -> int:
        return self.meta.page_size

    @property
    def used(self) -> int:
        """Bytes up to the high water mark: the whole of a snapshot without its trailer."""
        return self.meta.pages * self.meta.page_size

    @property
    def trailer(self) -> bytes | None:
        """The sha256 that a snapshot ends with; None for a db taken from a disk (etcdutl's rule: size mod 512)."""
        return self.data[self.size - TRAILER_SIZE : self.size] if self.size % SECTOR == TRAILER_SIZE else None

    def damaged(self, page: int, what: str) -> Damaged:
        return Damaged(self.name, page, what)

    def page(self, number: int) -> Page:
        """The page run that begins at page `number`; raises Damaged where its header cannot be that page's."""
        pages, size = self.meta.pages, self.meta.page_size
        if not FIRST_DATA_PAGE <= number < pages:
            raise self.damaged(number, f"referred to, but the file has pages 2 to {pages - 1}")
        offset = number * size
        identity, flags, count, overflow = HEADER.unpack_from(self.data, offset)
        if identity != number:
            raise self.damaged(number, f"calls itself page {identity}")
        if overflow >= pages - number:
            raise self.damaged(number, f"its {overflow} overflow pages reach beyond the end of the file")
        end = offset + (overflow + 1) * size
        if flags in (BRANCH, LEAF) and HEADER_SIZE + count * ELEMENT_SIZE > end - offset:
            raise self.damaged(number, f"{count} elements do not fit into {end - offset} bytes")
        return Page(number, offset, end, flags, count)

    def children(self, page: Page) -> tuple[list[bytes], tuple[int, ...]]:
        """The (first keys, page numbers) of a branch page."""
        if page.elements == 0:
            raise self.damaged(page.number, "a branch page without children")
        base = page.offset + HEADER_SIZE
        floor = base + page.elements * ELEMENT_SIZE
        table = branch_table(page.elements).unpack_from(self.data, base)
        starts = list(map(add, range(base, floor, ELEMENT_SIZE), table[0::3]))
        ends = list(map(add, starts, table[1::3]))
        if min(starts) < floor or max(ends) > page.end:
            raise self.damaged(page.number, "the key of a child lies outside of the page")
        return [self.data[start:end] for start, end in zip(starts, ends, strict=True)], table[2::3]

    def leaves(self, bucket: Bucket, backwards: bool = False) -> Iterator[Page]:
        """The leaf pages of a bucket in key order. A page met twice ends it with Damaged: loops cannot hang it."""
        if bucket.inline is not None:
            yield bucket.inline
            return
        seen = bytearray(self.meta.pages)
        stack: list[Iterator[int]] = [iter((bucket.root,))]
        while stack:
            number = next(stack[-1], None)
            if number is None:
                stack.pop()
                continue
            page = self.page(number)
            if seen[number]:
                raise self.damaged(number, "referred to twice")
            seen[number] = 1
            if page.flags == LEAF:
                yield page
            elif page.flags != BRANCH:
                raise self.damaged(number, f"flags {page.flags:#x} where a branch or a leaf belongs")
            elif len(stack) > MAX_DEPTH:
                raise self.damaged(number, "the tree is deeper than any real one")
            else:
                below = self.children(page)[1]
                stack.append(reversed(below) if backwards else iter(below))

    def columns(self, page: Page) -> Columns:
        """The elements of a leaf, every one inside its page."""
        count = page.elements
        base = page.offset + HEADER_SIZE
        table = leaf_table(count).unpack_from(self.data, base)
        floor, end, data = base + count * ELEMENT_SIZE, page.end, self.data
        keys: list[bytes] = []
        starts: list[int] = []
        ends: list[int] = []
        for pos, ksize, vsize in zip(table[1::4], table[2::4], table[3::4], strict=True):
            start = base + pos
            middle = start + ksize
            stop = middle + vsize
            if start < floor or stop > end:
                raise self.damaged(page.number, f"element {len(keys)} lies outside of the page")
            keys.append(data[start:middle])
            starts.append(middle)
            ends.append(stop)
            base += ELEMENT_SIZE
        return Columns(page, table[0::4], keys, starts, ends)

    def pairs(self, bucket: Bucket) -> Iterator[tuple[bytes, bytes]]:
        """Every (key, value) of a bucket in key order."""
        for page in self.leaves(bucket):
            columns = self.columns(page)
            for key, start, end in zip(columns.keys, columns.starts, columns.ends, strict=True):
                yield key, self.data[start:end]

    def buckets(self) -> dict[bytes, Bucket]:
        """The top-level buckets by name, in the order of the file."""
        root = Bucket(b"", self.meta.root, 0, None)
        found: dict[bytes, Bucket] = {}
        for page in self.leaves(root):
            columns = self.columns(page)
            for flags, name, start, end in zip(*columns[1:], strict=True):
                if not flags & 1:
                    raise self.damaged(page.number, f"{name!r} at the top level is no bucket")
                found[name] = self.bucket_at(page, name, start, end)
        return found

    def bucket_at(self, page: Page, name: bytes, start: int, end: int) -> Bucket:
        """The bucket whose record is `start:end` in a leaf of the top level."""
        if end - start < BUCKET.size:
            raise self.damaged(page.number, f"the record of bucket {name!r} is cut")
        root, sequence = BUCKET.unpack_from(self.data, start)
        if root:
            return Bucket(name, root, sequence, None)
        image = start + BUCKET.size
        if end - image < HEADER_SIZE:
            raise self.damaged(page.number, f"inline bucket {name!r} is cut")
        identity, flags, count, overflow = HEADER.unpack_from(self.data, image)
        if identity or flags != LEAF or overflow or HEADER_SIZE + count * ELEMENT_SIZE > end - image:
            raise self.damaged(page.number, f"inline bucket {name!r} holds no leaf")
        return Bucket(name, root, sequence, Page(page.number, image, end, flags, count))

    def sha256(self, listener: Listener = silent) -> bytes:
        """The hash of all but the trailer, to be compared with it."""
        total = self.size - (TRAILER_SIZE if self.trailer is not None else 0)
        digest = hashlib.sha256()
        view = memoryview(self.data)
        try:
            for offset in range(0, total, CHUNK):
                with view[offset : min(offset + CHUNK, total)] as chunk:
                    digest.update(chunk)
                listener(Progress("checksum", min(offset + CHUNK, total), total))
        finally:
            view.release()
        return digest.digest()

    def trailer_holds(self, listener: Listener = silent) -> bool | None:
        """Whether the trailing hash is that of the file; None where the file has none, being a db from a disk."""
        if self.trailer is not None:
            return self.sha256(listener) == self.trailer
        return False if cut(self.size) else None

    def let_go(self) -> None:
        """Unmaps what has been read; what is asked for again is mapped again. Takes a thirtieth of a second a GB."""
        if isinstance(self.data, mmap.mmap):
            self.data.madvise(mmap.MADV_DONTNEED)


def cut(size: int) -> bool:
    """A file of so many bytes has lost some or won some: a db ends with a sector, a snapshot 32 bytes after one."""
    return size % SECTOR not in (0, TRAILER_SIZE)


@lru_cache(maxsize=512)
def leaf_table(count: int) -> Struct:
    """flags, pos, ksize, vsize of `count` elements. At most 65,535, as count is a u16."""
    return Struct(f"<{4 * count}I")


@lru_cache(maxsize=512)
def branch_table(count: int) -> Struct:
    """pos, ksize, page of `count` children."""
    return Struct("<" + "IIQ" * count)


@contextmanager
def opened(path: Path) -> Iterator[Bolt]:
    """A snapshot or a raw db, mapped read-only.

    Raises NotFound where there is no such file, Unsound where it is no bbolt file or shorter than it says.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as absent:
        raise NotFound(f"{path}: no such file") from absent
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise Unsound(f"{path} is no regular file", "give a snapshot or a member's snap/db")
        if info.st_size == 0:
            raise Unsound(f"{path} is empty", "use another copy or an older backup")
        data = mmap.mmap(descriptor, info.st_size, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
    with data:
        yield parse(data, str(path))


def parse(data: Data, name: str) -> Bolt:
    """A db that is already in memory or mapped."""
    size = len(data)
    metas = read_metas(data)
    valid = [meta for meta in metas if meta is not None]
    if not valid:
        raise Unsound(
            f"{name}: neither of the two meta pages (pages 0 and 1) is valid",
            "this is no etcd snapshot or db, or it is damaged beyond opening: use another copy or an older backup",
        )
    meta = max(valid, key=lambda one: one.txid)
    if meta.pages * meta.page_size > size:
        raise Unsound(
            f"{name}: truncated: {size} bytes of {meta.pages * meta.page_size}, so page {size // meta.page_size} "
            "and all after it are missing",
            "use another copy or an older backup",
        )
    return Bolt(name, data, size, meta, metas)


def read_metas(data: Data) -> tuple[Meta | None, Meta | None]:
    """Pages 0 and 1; the page size is the file's own (that of the machine that made it), never assumed."""
    first = _meta(data, 0)
    if first is not None:
        return first, _meta(data, first.page_size, first.page_size)
    for size in PAGE_SIZES:
        second = _meta(data, size, size)
        if second is not None:
            return None, second
    return None, None


def _meta(data: Data, offset: int, page_size: int | None = None) -> Meta | None:
    start = offset + HEADER_SIZE
    if start + META_STRUCT.size > len(data):
        return None
    magic, version, size, _, root, _, freelist, pages, txid, checksum = META_STRUCT.unpack_from(data, start)
    if (magic, version) != (MAGIC, VERSION) or fnv1a(data[start : start + 56]) != checksum:
        return None
    if size not in PAGE_SIZES or (page_size is not None and size != page_size):
        return None
    return Meta(size, root, freelist, pages, txid)


def fnv1a(data: bytes) -> int:
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFF_FFFF_FFFF_FFFF
    return value
