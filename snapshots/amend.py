"""Amends a bbolt file the way bbolt does: new pages after the last one, then both metas.

Small buckets are replaced whole; a large one is only added to at its end, which rewrites its right-most path. Old pages
are left as they are and become free, as no freelist is stored: the cost is that of the change, not of the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from snapshots.bolt import (
    BRANCH,
    BUCKET,
    ELEMENT_SIZE,
    HEADER,
    HEADER_SIZE,
    LEAF,
    MAGIC,
    MAX_DEPTH,
    META,
    META_STRUCT,
    NO_FREELIST,
    VERSION,
    Bolt,
    Bucket,
    Meta,
    Page,
    branch_table,
    fnv1a,
    leaf_table,
)

Pair = tuple[bytes, bytes]
BUCKET_FLAG = 1
INLINE_SHARE = 4
"""bbolt keeps a bucket inside its parent's page up to a quarter of a page."""
MAX_ELEMENTS = 0xFFFE
"""A page counts its elements in 16 bits."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """`replaced` buckets hold these pairs and no others; `appended` pairs come after all that a bucket holds."""

    replaced: Mapping[bytes, Mapping[bytes, bytes]] = field(default_factory=dict)
    appended: Mapping[bytes, Sequence[Pair]] = field(default_factory=dict)


@dataclass(slots=True)
class _Pages:
    """Page runs handed out from `next` on, and their bytes."""

    page_size: int
    next: int
    images: list[bytes] = field(default_factory=list)

    def add(self, body: bytes, flags: int, elements: int) -> int:
        number = self.next
        run = -(-(HEADER_SIZE + len(body)) // self.page_size)
        header = HEADER.pack(number, flags, elements, run - 1)
        self.images.append((header + body).ljust(run * self.page_size, b"\0"))
        self.next += run
        return number


def tail(bolt: Bolt, amendment: Amendment) -> tuple[bytes, Meta]:
    """The bytes that go after `bolt.used`, and the meta that makes them part of the file."""
    pages = _Pages(bolt.page_size, bolt.meta.pages)
    buckets = bolt.buckets()
    values: dict[bytes, bytes] = {name: _bucket_value(bolt, bucket) for name, bucket in buckets.items()}
    for name, pairs in amendment.replaced.items():
        sequence = buckets[name].sequence if name in buckets else 0
        values[name] = _replaced(pages, sorted(pairs.items()), sequence)
    for name, more in amendment.appended.items():
        if more:
            held = buckets.get(name)
            values[name] = BUCKET.pack(_appended(bolt, pages, held, more), held.sequence if held else 0)
    root = pages.add(*_leaf(sorted(values.items()), BUCKET_FLAG))
    meta = Meta(bolt.page_size, root, NO_FREELIST, pages.next, bolt.meta.txid + 2)
    return b"".join(pages.images), meta


def apply(descriptor: int, bolt: Bolt, amendment: Amendment) -> int:
    """Writes the amendment into the file of `descriptor`, a copy of `bolt` up to `used`; returns its new size.

    The metas go last. The caller flushes; the file is nobody's before that.
    """
    images, meta = tail(bolt, amendment)
    pwrite(descriptor, images, bolt.used)
    for txid in (meta.txid - 1, meta.txid):
        place = txid % 2
        pwrite(descriptor, meta_page(meta._replace(txid=txid), place), place * meta.page_size)
    return meta.pages * meta.page_size


def pwrite(descriptor: int, data: bytes, offset: int) -> None:
    """os.pwrite until all is written."""
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += os.pwrite(descriptor, view[done:], offset + done)


def meta_page(meta: Meta, number: int) -> bytes:
    size, root, freelist, pages, txid = meta
    body = META_STRUCT.pack(MAGIC, VERSION, size, 0, root, 0, freelist, pages, txid, 0)[:-8]
    image = HEADER.pack(number, META, 0, 0) + body + fnv1a(body).to_bytes(8, "little")
    return image.ljust(size, b"\0")


def _bucket_value(bolt: Bolt, bucket: Bucket) -> bytes:
    head = BUCKET.pack(bucket.root, bucket.sequence)
    return head if bucket.inline is None else head + bolt.data[bucket.inline.offset : bucket.inline.end]


def _replaced(pages: _Pages, pairs: Sequence[Pair], sequence: int) -> bytes:
    body, flags, count = _leaf(pairs)
    if HEADER_SIZE + len(body) <= pages.page_size // INLINE_SHARE:
        return BUCKET.pack(0, sequence) + HEADER.pack(0, flags, count, 0) + body
    return BUCKET.pack(
        _root(
            pages, [(pair_group[0][0], pages.add(*_leaf(pair_group))) for pair_group in _filled(pairs, pages.page_size)]
        ),
        sequence,
    )


def _appended(bolt: Bolt, pages: _Pages, bucket: Bucket | None, more: Sequence[Pair]) -> int:
    """The new root of a bucket whose last leaf takes `more`; every branch on the way to it is written anew."""
    path: list[list[tuple[bytes, int]]] = []
    held: list[Pair] = []
    if bucket is not None:
        page = bucket.inline or bolt.page(bucket.root)
        while page.flags == BRANCH and len(path) < MAX_DEPTH:
            keys, numbers = bolt.children(page)
            path.append(list(zip(keys, numbers, strict=True)))
            page = bolt.page(numbers[-1])
        held = _pairs_of(bolt, page)
    level = [(group[0][0], pages.add(*_leaf(group))) for group in _filled([*held, *more], pages.page_size)]
    for children in reversed(path):
        level[0] = (children[-1][0], level[0][1])
        level = _branches(pages, children[:-1] + level)
    return _root(pages, level)


def _pairs_of(bolt: Bolt, page: Page) -> list[Pair]:
    if page.flags != LEAF:
        raise bolt.damaged(page.number, f"flags {page.flags:#x} where a leaf belongs")
    columns = bolt.columns(page)
    values = [bolt.data[start:end] for start, end in zip(columns.starts, columns.ends, strict=True)]
    return list(zip(columns.keys, values, strict=True))


def _root(pages: _Pages, level: list[tuple[bytes, int]]) -> int:
    while len(level) > 1:
        level = _branches(pages, level)
    return level[0][1]


def _branches(pages: _Pages, children: list[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    """Branch pages over `children`, each as full as a page takes; at least two children a page, whatever their size."""
    groups: list[list[tuple[bytes, int]]] = [[]]
    size = HEADER_SIZE
    for child in children:
        grown = size + ELEMENT_SIZE + len(child[0])
        if (grown > pages.page_size and len(groups[-1]) > 1) or len(groups[-1]) == MAX_ELEMENTS:
            groups.append([])
            grown = HEADER_SIZE + ELEMENT_SIZE + len(child[0])
        groups[-1].append(child)
        size = grown
    return [(group[0][0], pages.add(*branch_image(group))) for group in groups]


def branch_image(children: Sequence[tuple[bytes, int]]) -> tuple[bytes, int, int]:
    """(what follows the header, flags, count) of a branch page."""
    table: list[int] = []
    at = len(children) * ELEMENT_SIZE
    for place, (key, number) in enumerate(children):
        table += (at - place * ELEMENT_SIZE, len(key), number)
        at += len(key)
    return branch_table(len(children)).pack(*table) + b"".join(key for key, _ in children), BRANCH, len(children)


def _filled(pairs: Iterable[Pair], page_size: int) -> list[list[Pair]]:
    """Pairs in groups that fit a page; one that fits none has its own run of pages."""
    groups: list[list[Pair]] = [[]]
    size = HEADER_SIZE
    for key, value in pairs:
        grown = size + ELEMENT_SIZE + len(key) + len(value)
        if (grown > page_size and groups[-1]) or len(groups[-1]) == MAX_ELEMENTS:
            groups.append([])
            grown = HEADER_SIZE + ELEMENT_SIZE + len(key) + len(value)
        groups[-1].append((key, value))
        size = grown
    return groups


def _leaf(pairs: Sequence[Pair], element_flags: int = 0) -> tuple[bytes, int, int]:
    table: list[int] = []
    at = len(pairs) * ELEMENT_SIZE
    for place, (key, value) in enumerate(pairs):
        table += (element_flags, at - place * ELEMENT_SIZE, len(key), len(value))
        at += len(key) + len(value)
    data = b"".join(part for pair in pairs for part in pair)
    return leaf_table(len(pairs)).pack(*table) + data, LEAF, len(pairs)
