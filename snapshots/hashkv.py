"""The hash that members of one cluster compare: `etcdctl endpoint hashkv`, from a file that stays as it is.

CRC32C over "key" and then every revision and KeyValue up to a revision, without what the last compaction drops
(server/storage/mvcc/{hash,kvstore,key_index}.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.errors import UsageError
from drtool.core.events import Listener, Progress, silent
from snapshots.bolt import Columns
from snapshots.crc import crc32c
from snapshots.mvcc import TOMBSTONE_SIZE, Keyspace, user_key
from snapshots.wire import Malformed

REPORT_EVERY = 4096


@dataclass(frozen=True, slots=True)
class HashKV:
    """`compact_revision` is -1 where nothing was compacted.

    Older servers (to 3.4.33 and 3.5.15) remove a deletion at the compaction's own revision; newer ones keep it and
    leave it out of the hash, so that both answer the same.
    """

    hash: int
    compact_revision: int
    revision: int


def hashkv(keyspace: Keyspace, revision: int = 0, listener: Listener = silent) -> HashKV:
    """`revision` 0 is the newest. Raises UsageError for one that is compacted or yet to come."""
    last, compacted = keyspace.last().main, keyspace.compacted()
    at = revision or last
    if at > last:
        raise UsageError(f"{keyspace.bolt.name}: revision {at} is yet to come: the newest is {last}")
    if at < compacted:
        raise UsageError(f"{keyspace.bolt.name}: revision {at} is compacted: the oldest is {compacted}")
    keep = _keep(keyspace, at, compacted, listener)
    beyond, limit = (compacted + 1).to_bytes(8), (at + 1).to_bytes(8)
    edge = compacted.to_bytes(8) if compacted >= 0 else b"none"
    crc, data = crc32c(b"key"), keyspace.bolt.data
    for columns in _pages(keyspace, "hash", listener):
        keys = columns.keys
        if keys[0] >= limit:
            break
        if beyond <= keys[0] and keys[-1] < limit and _back_to_back(columns):
            crc = crc32c(data[columns.starts[0] - len(keys[0]) : columns.ends[-1]], crc)
            continue
        for key, start, end in zip(keys, columns.starts, columns.ends, strict=True):
            dropped = key < beyond and keep and key not in keep
            if key < limit and not dropped and not (len(key) == TOMBSTONE_SIZE and key.startswith(edge)):
                crc = crc32c(data[start:end], crc32c(key, crc))
    return HashKV(crc, compacted, at)


def _pages(keyspace: Keyspace, phase: str, listener: Listener) -> Iterator[Columns]:
    bolt, bucket = keyspace.bolt, keyspace.buckets.get(b"key")
    if bucket is None:
        return
    for number, page in enumerate(bolt.leaves(bucket)):
        if page.elements:
            yield bolt.columns(page)
        if number % REPORT_EVERY == 0:
            listener(Progress(phase, number * bolt.page_size, bolt.used))


def _back_to_back(columns: Columns) -> bool:
    """Whether the page's pairs are one region: each value ends where the next key begins."""
    starts = [start - len(key) for start, key in zip(columns.starts, columns.keys, strict=True)]
    return starts[1:] == columns.ends[:-1]


def _keep(keyspace: Keyspace, at: int, compacted: int, listener: Listener) -> set[bytes]:
    """Revisions that a compaction leaves: of each key the newest up to `at`, unless it is a deletion."""
    newest: dict[bytes, bytes] = {}
    if compacted < 0:
        return set()
    data, limit = keyspace.bolt.data, (at + 1).to_bytes(8)
    for columns in _pages(keyspace, "index", listener):
        if columns.keys[0] >= limit:
            break
        try:
            for revision, start, end in zip(columns.keys, columns.starts, columns.ends, strict=True):
                if revision >= limit:
                    break
                key = user_key(data, start, end)
                if len(revision) == TOMBSTONE_SIZE:
                    newest.pop(key, None)
                else:
                    newest[key] = revision
        except Malformed as wrong:
            raise keyspace.bolt.damaged(columns.page.number, f"bad KeyValue: {wrong}") from wrong
    return set(newest.values())
