"""What the newest revisions of a db say about its keys: how many, how often rewritten, sealed with which keys.

Read backwards from the newest revision, so that the first time a key is met is its present state, and work can stop
anywhere: what was read is then the newest part.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from snapshots.bolt import Bolt, Page
from snapshots.mvcc import TOMBSTONE_SIZE, Keyspace, decode_key_value, user_key
from snapshots.registry import keys as registry
from snapshots.registry.encryption import PREFIX, Locked, seal
from snapshots.wire import Malformed

KUBEADM_CONFIG = b"configmaps/kube-system/kubeadm-config"
NODES = b"minions"
PLAIN = ""


@dataclass(slots=True)
class Sealed:
    """Live values of one resource that are stored the same way. `key` and `value` are of one of them.

    `provider` is "" for values that are not encrypted, else as their first bytes say (`aescbc`, `kms`); `name` is the
    key's or the plugin's.
    """

    resource: str
    provider: str
    name: str
    count: int = 0
    key: bytes = b""
    value: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class Contents:
    """`whole` is False where reading stopped before the oldest revision. `kubeadm` is the kubeadm-config as stored."""

    whole: bool = True
    revisions: int = 0
    keys: int = 0
    live: int = 0
    nodes: tuple[str, ...] = ()
    kubeadm: bytes = field(default=b"", repr=False)
    stored: tuple[Sealed, ...] = ()


def read(keyspace: Keyspace, budget: int, prefix: str = registry.PREFIX) -> Contents:
    """`budget` is in bytes of pages. Raises Damaged."""
    bucket = keyspace.buckets.get(b"key")
    reading = _Reading(keyspace.bolt, prefix.encode().rstrip(b"/") + b"/", prefix.rstrip("/"))
    if bucket is None:
        return Contents()
    for page in keyspace.bolt.leaves(bucket, backwards=True):
        if budget <= 0:
            reading.found.whole = False
            break
        budget -= page.end - page.offset
        reading.take(page)
    return reading.contents()


class _Reading:
    def __init__(self, bolt: Bolt, prefix: bytes, registry_prefix: str) -> None:
        self.bolt, self.prefix, self.registry_prefix = bolt, prefix, registry_prefix
        self.found = Contents()
        self.seen: set[bytes] = set()
        self.nodes: list[str] = []
        self.resources: dict[bytes, str] = {}
        self.stored: dict[tuple[str, str, str], Sealed] = {}

    def take(self, page: Page) -> None:
        data = self.bolt.data
        _, _, revisions, starts, ends = self.bolt.columns(page)
        self.found.revisions += len(revisions)
        for revision, start, end in zip(reversed(revisions), reversed(starts), reversed(ends), strict=True):
            try:
                key = user_key(data, start, end)
                if key in self.seen:
                    continue
                self.seen.add(key)
                if len(revision) != TOMBSTONE_SIZE:
                    self._live(key, start, end)
            except Malformed as wrong:
                raise self.bolt.damaged(page.number, f"bad KeyValue: {wrong}") from wrong

    def _live(self, key: bytes, start: int, end: int) -> None:
        self.found.live += 1
        if not key.startswith(self.prefix):
            return
        rest = key[len(self.prefix) :]
        if rest.startswith(NODES + b"/"):
            self.nodes.append(rest[len(NODES) + 1 :].decode("utf-8", "replace"))
        resource = self._resource(key)
        if not resource:
            return
        provider = name = PLAIN
        if self.bolt.data.find(PREFIX, start, end) >= 0:
            provider, name = _seal(decode_key_value(self.bolt.data[start:end]).value)
        one = self.stored.setdefault((resource, provider, name), Sealed(resource, provider, name))
        one.count += 1
        if not one.key:
            one.key = key
            one.value = decode_key_value(self.bolt.data[start:end]).value if provider else b""
        if rest == KUBEADM_CONFIG and not provider:
            self.found.kubeadm = decode_key_value(self.bolt.data[start:end]).value

    def _resource(self, key: bytes) -> str:
        """`secrets`, `apps.example.org/widgets`; looked up once for each directory of keys."""
        directory = key.rpartition(b"/")[0]
        if directory not in self.resources:
            place = registry.place(key, self.registry_prefix)
            self.resources[directory] = "/".join(filter(None, (place.group, place.resource))) if place else ""
        return self.resources[directory]

    def contents(self) -> Contents:
        self.found.keys = len(self.seen)
        self.found.nodes = tuple(sorted(self.nodes))
        self.found.stored = tuple(self.stored.values())
        return self.found


def _seal(value: bytes) -> tuple[str, str]:
    """A sealed value's provider and key name; a text that merely mentions the prefix is plain."""
    try:
        found = seal(value)
    except Locked:
        return "unknown", ""
    return (found.provider, found.key) if found else (PLAIN, PLAIN)
