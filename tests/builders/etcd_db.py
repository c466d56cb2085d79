"""Small dbs made to order: any buckets, any page size, with or without the trailer of a snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from snapshots import amend, bolt
from snapshots.amend import Amendment
from snapshots.mvcc import KeyValue, Revision, encode_key_value, encode_revision

BUCKETS = (b"alarm", b"auth", b"authRoles", b"authUsers", b"cluster", b"key", b"lease", b"members", b"meta")

Change = tuple[int, bytes, bytes | None]
"""(main revision, user key, value); None deletes."""


def db(buckets: Mapping[bytes, Mapping[bytes, bytes]], page_size: int = 4096) -> bytes:
    """The file up to its high water mark."""
    base = bolt.Meta(page_size, 2, bolt.NO_FREELIST, 3, 1)
    root = bolt.HEADER.pack(2, bolt.LEAF, 0, 0).ljust(page_size, b"\0")
    empty = amend.meta_page(base._replace(txid=0), 0) + amend.meta_page(base, 1) + root
    replaced = {name: {} for name in BUCKETS} | dict(buckets)
    images, meta = amend.tail(bolt.parse(empty, "empty"), Amendment(replaced))
    metas = [amend.meta_page(meta._replace(txid=txid), txid % 2) for txid in (meta.txid, meta.txid + 1)]
    metas.sort(key=lambda page: page[:8])
    return b"".join(metas) + root + images


def snapshot(buckets: Mapping[bytes, Mapping[bytes, bytes]], page_size: int = 4096) -> bytes:
    return sealed(db(buckets, page_size))


def sealed(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest()


def key_bucket(changes: Iterable[Change]) -> dict[bytes, bytes]:
    """What etcd's MVCC store would have written for these changes, each in a transaction of its own."""
    pairs: dict[bytes, bytes] = {}
    alive: dict[bytes, tuple[int, int]] = {}
    for main, key, value in changes:
        if value is None:
            alive.pop(key, None)
            deleted = KeyValue(key, 0, 0, 0, b"", 0)
            pairs[encode_revision(Revision(main), tombstone=True)] = encode_key_value(deleted)
            continue
        created, version = alive.get(key, (main, 0))
        alive[key] = (created, version + 1)
        kv = KeyValue(key, created, main, version + 1, value, 0)
        pairs[encode_revision(Revision(main))] = encode_key_value(kv)
    return pairs
