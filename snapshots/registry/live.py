"""A running etcd as a source of objects, at one revision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snapshots.mvcc import Change, KeyValue, Revision

if TYPE_CHECKING:
    from snapshots import etcd

PAGE = 500


@dataclass(frozen=True, slots=True)
class Live:
    """Answers as `mvcc.Index` does; every call raises what the client raises."""

    client: etcd.Etcd = field(repr=False)
    revision: int

    def keys(self, prefix: bytes = b"") -> list[bytes]:
        return [pair.key for pair in self.prefix(prefix)]

    def prefix(self, prefix: bytes = b"") -> Iterator[KeyValue]:
        start, end = prefix or b"\0", after(prefix)
        while True:
            page = self.client.get(start, end, limit=PAGE, revision=self.revision)
            yield from map(_pair, page)
            if len(page) < PAGE:
                return
            start = page[-1].key + b"\0"

    def get(self, key: bytes) -> KeyValue | None:
        found = self.client.get(key, revision=self.revision)
        return _pair(found[0]) if found else None

    def history(self, key: bytes) -> Iterator[Change]:
        """The revisions since the key was last created, as far as etcd still holds them, oldest first."""
        from snapshots.etcd import EtcdRefused

        found: list[Change] = []
        at = self.revision
        while at > 0:
            try:
                pairs = self.client.get(key, revision=at)
            except EtcdRefused:
                break  # compacted
            if not pairs:
                break
            found.append(Change(Revision(pairs[0].mod_revision), _pair(pairs[0])))
            at = pairs[0].mod_revision - 1
        return reversed(found)


def _pair(kv: etcd.KeyValue) -> KeyValue:
    return KeyValue(kv.key, kv.create_revision, kv.mod_revision, kv.version, kv.value, kv.lease)


def after(prefix: bytes) -> bytes:
    """The end of the range of all keys that begin with `prefix`; `\\0` for all keys."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else b"\0"
