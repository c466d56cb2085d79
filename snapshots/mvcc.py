"""etcd's data in a bbolt file: revisions, keys as of any revision, history, compaction.

Bucket `key` maps a revision (17 bytes `main u64 BE | '_' | sub u64 BE`, and a `t` after it for a tombstone) to a
mvccpb.KeyValue; the same in etcd 3.4 to 3.7 (server/storage/mvcc/{revision,kvstore}.go).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from drtool.core.errors import Unsound, UsageError
from snapshots import bolt as bbolt
from snapshots import leafgroups, wire
from snapshots.bolt import Bolt, Bucket, Columns, Data
from snapshots.leafgroups import KEY_TAG, Group

REVISION_SIZE, TOMBSTONE_SIZE = 17, 18
VALUE_TAG = 0x2A
LEASE_FIELD = 6
VARINT = rb"[\x80-\xff]{0,8}[\x00-\x7f]"
"""Up to 63 bits; a negative number has ten bytes, and is left to the decoder."""
NUMBERS = re.compile(rb"(?:\x10%b)?(?:\x18%b)?(?:\x20%b)?" % ((VARINT,) * 3))
"""The fields between key and value."""
LEASE = re.compile(rb"\x30%b" % VARINT)


class Revision(NamedTuple):
    """`main` counts transactions, `sub` the changes in one."""

    main: int
    sub: int = 0

    def __str__(self) -> str:
        return f"{self.main}.{self.sub}" if self.sub else str(self.main)


class KeyValue(NamedTuple):
    """A key as etcd answers it. `version` counts the changes since it was created, `lease` is 0 for none."""

    key: bytes
    create_revision: int
    mod_revision: int
    version: int
    value: bytes
    lease: int


class Change(NamedTuple):
    """One revision of a key; `kv` is None where it was deleted."""

    revision: Revision
    kv: KeyValue | None


def encode_revision(revision: Revision, tombstone: bool = False) -> bytes:
    return b"%b_%b%b" % (revision.main.to_bytes(8), revision.sub.to_bytes(8), b"t" if tombstone else b"")


def decode_revision(key: bytes) -> Revision:
    """Raises Malformed for anything but 17 bytes, or 18 with a final `t`."""
    if len(key) not in (REVISION_SIZE, TOMBSTONE_SIZE) or key[8:9] != b"_" or key[17:] not in (b"", b"t"):
        raise wire.Malformed(f"{key.hex()} is no revision")
    return Revision(int.from_bytes(key[:8]), int.from_bytes(key[9:17]))


def decode_key_value(data: bytes) -> KeyValue:
    """A mvccpb.KeyValue; raises Malformed as etcd's own decoder does."""
    key = value = b""
    create = mod = version = lease = 0
    for number, content in wire.fields(data):
        if number == 1:
            key = wire.blob(content)
        elif number == 2:
            create = wire.signed(content)
        elif number == 3:
            mod = wire.signed(content)
        elif number == 4:
            version = wire.signed(content)
        elif number == 5:
            value = wire.blob(content)
        elif number == LEASE_FIELD:
            lease = wire.signed(content)
    return KeyValue(key, create, mod, version, value, lease)


def encode_key_value(kv: KeyValue) -> bytes:
    """As etcd's servers write it: in field order, zero and empty fields left out."""
    return b"".join(wire.field(number, content) for number, content in enumerate(kv_fields(kv), 1) if content)


def kv_fields(kv: KeyValue) -> tuple[bytes | int, ...]:
    return kv.key, kv.create_revision, kv.mod_revision, kv.version, kv.value, kv.lease


def user_key(data: Data, start: int, end: int) -> bytes:
    """The key of the KeyValue at `start:end`. Servers write it first; any other order is decoded in full."""
    if end - start > 1 and data[start] == KEY_TAG:
        size = data[start + 1]
        stop = start + 2 + size
        if size < 0x80 and stop <= end:
            return data[start + 2 : stop]
    return decode_key_value(data[start:end]).key


def checked_user_key(data: Data, start: int, end: int) -> bytes:
    """The key of a KeyValue that etcd's decoder takes; raises Malformed for any other.

    What servers write is compared as a pattern, which is several times faster than decoding it.
    """
    if end - start > 1 and data[start] == KEY_TAG and data[start + 1] < 0x80:
        stop = start + 2 + data[start + 1]
        if stop <= end and rest_is_decodable(data, stop, end):
            return data[start + 2 : stop]
    return decode_key_value(data[start:end]).key


def checked_user_keys(data: Data, starts: Iterable[int], ends: Iterable[int]) -> list[bytes]:
    """`checked_user_key` of each, with a key and a value of usual sizes read in place. Raises Malformed."""
    match = NUMBERS.match
    found = []
    for start, end in zip(starts, ends, strict=True):
        size = data[start + 1] if end - start > 1 and data[start] == KEY_TAG else 0x80
        stop = start + 2 + size
        numbers = match(data, stop) if size < 0x80 else None
        at = numbers.end() if numbers else end
        if at + 2 < end and data[at] == VALUE_TAG:
            low, high = data[at + 1], data[at + 2]
            if low < 0x80:
                at += 2 + low
            elif high < 0x80:
                at += 3 + (low & 0x7F) + (high << 7)
            if at == end:
                found.append(data[start + 2 : stop])
                continue
        found.append(checked_user_key(data, start, end))
    return found


def rest_is_decodable(data: Data, start: int, end: int) -> bool:
    """Whether what follows a KeyValue's key is what servers write: three numbers, a value, a lease, each or none."""
    match = NUMBERS.match(data, start)
    at = match.end() if match else end + 1
    if at + 1 < end and data[at] == VALUE_TAG:
        try:
            size, width = wire.varint(data[at + 1 : min(at + 11, end)], 0)
        except wire.Malformed:
            return False
        at += 1 + width + size
    return at == end or (at < end and LEASE.fullmatch(data, at, end) is not None)


@dataclass(frozen=True, slots=True)
class Index:
    """The keys alive at a revision. `places` holds `start << 32 | size` of each key's KeyValue in the file."""

    bolt: Bolt = field(repr=False)
    revision: int
    places: dict[bytes, int] = field(repr=False)
    ordered: list[bytes] = field(repr=False)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, key: bytes) -> bool:
        return key in self.places

    def keys(self, prefix: bytes = b"") -> list[bytes]:
        """The keys that begin with `prefix`, in byte order."""
        return self.ordered[bisect_left(self.ordered, prefix) : self._after(prefix)]

    def prefix(self, prefix: bytes = b"") -> Iterator[KeyValue]:
        """The keys that begin with `prefix`, with their values, in byte order."""
        for key in self.keys(prefix):
            yield self._read(self.places[key])

    def get(self, key: bytes) -> KeyValue | None:
        place = self.places.get(key)
        return None if place is None else self._read(place)

    def size(self, key: bytes) -> int:
        """Bytes of the key's newest KeyValue as stored; 0 where the key is not alive."""
        return self.places.get(key, 0) & 0xFFFF_FFFF

    def _after(self, prefix: bytes) -> int:
        trimmed = prefix.rstrip(b"\xff")
        if not trimmed:
            return len(self.ordered)
        return bisect_left(self.ordered, trimmed[:-1] + bytes([trimmed[-1] + 1]))

    def _read(self, place: int) -> KeyValue:
        start = place >> 32
        try:
            return decode_key_value(self.bolt.data[start : start + (place & 0xFFFF_FFFF)])
        except wire.Malformed as wrong:
            raise self.bolt.damaged(start // self.bolt.page_size, f"bad KeyValue: {wrong}") from wrong


@dataclass(frozen=True, slots=True)
class Keyspace:
    """What the buckets `key` and `meta` hold, whatever the etcd line that wrote them."""

    bolt: Bolt
    buckets: dict[bytes, Bucket] = field(repr=False)

    def records(self) -> Iterator[tuple[Revision, bool, int, int]]:
        """Each (revision, tombstone, start, end) in the order of revisions; `start:end` is its KeyValue."""
        bucket = self.buckets.get(b"key")
        if bucket is None:
            return
        for page in self.bolt.leaves(bucket):
            columns = self.bolt.columns(page)
            for key, start, end in zip(columns.keys, columns.starts, columns.ends, strict=True):
                try:
                    yield decode_revision(key), len(key) == TOMBSTONE_SIZE, start, end
                except wire.Malformed as wrong:
                    raise self.bolt.damaged(page.number, str(wrong)) from wrong

    def last(self) -> Revision:
        """The newest revision; 0 where there is none. Reads the right-most path only."""
        bucket = self.buckets.get(b"key")
        if bucket is None:
            return Revision(0)
        page = bucket.inline or self.bolt.page(bucket.root)
        for _ in range(bbolt.MAX_DEPTH):
            if page.flags != bbolt.BRANCH:
                break
            page = self.bolt.page(self.bolt.children(page)[1][-1])
        if page.flags != bbolt.LEAF:
            raise self.bolt.damaged(page.number, f"flags {page.flags:#x} where a leaf belongs")
        keys = self.bolt.columns(page).keys
        try:
            return decode_revision(keys[-1]) if keys else Revision(0)
        except wire.Malformed as wrong:
            raise self.bolt.damaged(page.number, str(wrong)) from wrong

    def compacted(self) -> int:
        """The revision up to which history is gone once a server has booted; -1 where nothing was compacted."""
        return compacted(self.meta(), self.bolt.name)

    def meta(self) -> dict[bytes, bytes]:
        return self.small(b"meta")

    def small(self, name: bytes) -> dict[bytes, bytes]:
        """A bucket of few pairs, in memory; empty where the file has none of that name."""
        bucket = self.buckets.get(name)
        return {} if bucket is None else dict(self.bolt.pairs(bucket))

    def place(self, name: bytes) -> str:
        """File and page of a bucket, for messages."""
        held = self.buckets.get(name)
        page = 0 if held is None else held.root or (held.inline.number if held.inline else 0)
        return f"{self.bolt.name}: page {page}"

    def index(self, revision: int | None = None) -> Index:
        """The keys alive at `revision` (None: the newest). Raises UsageError where it is compacted or yet to come."""
        last = self.last().main
        at = last if revision is None else revision
        if at > last:
            raise UsageError(f"{self.bolt.name}: revision {at} is yet to come: the newest is {last}")
        if revision is not None and revision < self.compacted():
            raise UsageError(f"{self.bolt.name}: revision {at} is compacted: the oldest is {self.compacted()}")
        places = self._places(at)
        return Index(self.bolt, at, places, sorted(places))

    def _places(self, at: int) -> dict[bytes, int]:
        """The inner loop of every listing: columns and one dict."""
        places: dict[bytes, int] = {}
        bucket = self.buckets.get(b"key")
        if bucket is None:
            return places
        limit = at.to_bytes(8) + b"_\xff"
        for columns in leafgroups.columns(self.bolt, bucket):
            if columns.keys and columns.keys[0] > limit:
                break
            if not self._place_together(columns, places, limit):
                self._place_each(columns, places, limit)
        return places

    def _place_together(self, columns: Columns | Group, places: dict[bytes, int], limit: bytes) -> bool:
        """False, and nothing placed, where something was deleted, lies beyond `limit` or is written unusually."""
        revisions, starts, ends = columns.keys, columns.starts, columns.ends
        if not revisions or revisions[-1] > limit or TOMBSTONE_SIZE in set(map(len, revisions)):
            return False
        keys = leafgroups.user_keys(self.bolt.data, starts, ends)
        if keys is None:
            return False
        places.update(
            zip(keys, [start << 32 | (end - start) for start, end in zip(starts, ends, strict=True)], strict=True)
        )
        return True

    def _place_each(self, columns: Columns | Group, places: dict[bytes, int], limit: bytes) -> None:
        data = self.bolt.data
        for revision, start, end in zip(columns.keys, columns.starts, columns.ends, strict=True):
            if revision > limit:
                return
            try:
                key = user_key(data, start, end)
            except wire.Malformed as wrong:
                raise self.bolt.damaged(start // self.bolt.page_size, f"bad KeyValue: {wrong}") from wrong
            if len(revision) == TOMBSTONE_SIZE:
                places.pop(key, None)
            else:
                places[key] = start << 32 | (end - start)

    def history(self, key: bytes) -> Iterator[Change]:
        """Every revision of `key` that compaction has left, oldest first."""
        for revision, tombstone, start, end in self.records():
            page = start // self.bolt.page_size
            try:
                if user_key(self.bolt.data, start, end) == key:
                    kv = decode_key_value(self.bolt.data[start:end])
                    yield Change(revision, None if tombstone else kv)
            except wire.Malformed as wrong:
                raise self.bolt.damaged(page, f"bad KeyValue: {wrong}") from wrong


def compacted(meta: Mapping[bytes, bytes], name: str) -> int:
    """The newer of the two compactions that bucket `meta` of the file `name` records; -1 where there was none."""
    revisions = [-1]
    for key in (b"scheduledCompactRev", b"finishedCompactRev"):
        if key in meta:
            try:
                revisions.append(decode_revision(meta[key]).main)
            except wire.Malformed as wrong:
                raise Unsound(f"{name}: bucket meta: {key.decode()}: {wrong}") from wrong
    return max(revisions)


@contextmanager
def opened(path: Path) -> Iterator[Keyspace]:
    """The keys of a snapshot or a raw db; raises as `bolt.opened` does."""
    with bbolt.opened(path) as db:
        yield keyspace(db)


def keyspace(db: Bolt) -> Keyspace:
    return Keyspace(db, db.buckets())
