"""Objects in memory as a source: what a db holds, without one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from snapshots.mvcc import Change, KeyValue, Revision
from snapshots.registry.cluster import Cluster
from snapshots.registry.encryption import Keys
from snapshots.registry.objects import Registry
from snapshots.registry.resources import Resource, built_in, defined


@dataclass(frozen=True)
class Stored:
    """A source (`snapshots.registry.objects.Source`) over key-value pairs."""

    pairs: dict[bytes, KeyValue] = field(default_factory=dict)
    revision: int = 100

    def keys(self, prefix: bytes = b"") -> list[bytes]:
        return sorted(key for key in self.pairs if key.startswith(prefix))

    def prefix(self, prefix: bytes = b"") -> Iterator[KeyValue]:
        return (self.pairs[key] for key in self.keys(prefix))

    def get(self, key: bytes) -> KeyValue | None:
        return self.pairs.get(key)


def bodies(text: str) -> list[dict[str, Any]]:
    return [body for body in yaml.safe_load_all(text) if body]


def registry(text: str = "", raw: dict[str, bytes] | None = None, secrets: Keys | None = None) -> Registry:
    """The objects of a YAML text, stored as JSON; `raw` adds values by key, as they are."""
    found = bodies(text)
    kinds = [
        *built_in(),
        *filter(None, (defined(body) for body in found if body["kind"].startswith("CustomResourceD"))),
    ]
    pairs = [pair(key_of(body, kinds), json.dumps(body).encode(), at) for at, body in enumerate(found, 10)]
    pairs += [pair(key.encode(), value, at) for at, (key, value) in enumerate((raw or {}).items(), 80)]
    stored = Stored({each.key: each for each in pairs})
    return Registry(stored, "made.db", secrets or Keys(), changes=lambda key: _changes(stored, key))


def cluster(text: str = "", raw: dict[str, bytes] | None = None) -> Cluster:
    return Cluster(registry(text, raw))


def pair(key: bytes, value: bytes, revision: int) -> KeyValue:
    return KeyValue(key, revision, revision, 1, value, 0)


def key_of(body: dict[str, Any], kinds: list[Resource]) -> bytes:
    resource = next(each for each in kinds if each.kind == body["kind"])
    metadata = body["metadata"]
    return resource.prefix("/registry", metadata.get("namespace", "")) + metadata["name"].encode()


def _changes(stored: Stored, key: bytes) -> Iterator[Change]:
    found = stored.get(key)
    if found:
        yield Change(Revision(found.mod_revision), found)
