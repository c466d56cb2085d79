"""Objects of an open db: found by their keys, decoded one by one, never one that spoils the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

from snapshots.mvcc import Change
from snapshots.registry import encryption, envelope, keys, served
from snapshots.registry.encryption import Keys, Locked
from snapshots.registry.envelope import MISTYPED, Damaged
from snapshots.registry.keys import PREFIX, Place
from snapshots.registry.resources import Resource, Resources, resources


class Pair(Protocol):
    """A key and its value as etcd has them."""

    @property
    def key(self) -> bytes: ...
    @property
    def value(self) -> bytes: ...
    @property
    def create_revision(self) -> int: ...
    @property
    def mod_revision(self) -> int: ...


class Source(Protocol):
    """Keys at one revision: `mvcc.Index`, or a live etcd."""

    @property
    def revision(self) -> int: ...
    def keys(self, prefix: bytes = b"") -> list[bytes]: ...
    def prefix(self, prefix: bytes = b"") -> Iterator[Pair]: ...
    def get(self, key: bytes) -> Pair | None: ...


@dataclass(frozen=True, slots=True)
class Object:
    """One object at one revision. `trouble` says why `body` holds no more than what the key tells, else it is empty."""

    place: Place
    key: bytes
    revision: int
    created: int
    body: dict[str, Any] = field(repr=False)
    trouble: str = ""

    @property
    def kind(self) -> str:
        return str(self.body.get("kind", ""))

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def namespace(self) -> str:
        return self.place.namespace

    @property
    def metadata(self) -> dict[str, Any]:
        found = self.body.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def labels(self) -> dict[str, Any]:
        found = self.metadata.get("labels")
        return found if isinstance(found, dict) else {}

    def at(self, *path: str | int) -> Any:
        """What stands at a path of the body, None where any step of it is missing."""
        return at(self.body, *path)

    def __str__(self) -> str:
        owner = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind or self.place.resource} {owner}{self.name}"


def at(body: Any, *path: str | int) -> Any:
    for step in path:
        if isinstance(step, str):
            body = body.get(step) if isinstance(body, dict) else None
        else:
            body = body[step] if isinstance(body, list) and -len(body) <= step < len(body) else None
    return body


def read(pair: Pair, place: Place, secrets: Keys, managed: bool = True) -> Object:
    """The object as kubectl shows it, without managedFields where not `managed`."""
    trouble = ""
    try:
        body = _served(envelope.decode(encryption.opened(pair.value, pair.key, secrets), managed))
        metadata = body.get("metadata") or {}
        body["metadata"] = metadata | {"resourceVersion": str(pair.mod_revision)}
    except Locked as locked:
        trouble = f"locked: {locked}"
    except Damaged as damaged:
        trouble = f"damaged: {damaged}"
    if trouble:
        named = {"name": place.name} | ({"namespace": place.namespace} if place.namespace else {})
        body = {"metadata": named | {"resourceVersion": str(pair.mod_revision)}}
    return Object(place, pair.key, pair.mod_revision, pair.create_revision, body, trouble)


def _no_changes(_: bytes) -> Iterable[Change]:
    return ()


def _served(body: dict[str, Any]) -> dict[str, Any]:
    try:
        return served.served(body)
    except MISTYPED as wrong:
        raise Damaged("a field has a type that no API server stores") from wrong


@dataclass(frozen=True)
class Registry:
    """The Kubernetes objects of a source. `name` is what errors call it, `root` the API server's --etcd-prefix.

    `changes` gives what the source holds of a key's past, oldest first; `managed` keeps metadata.managedFields.
    """

    source: Source = field(repr=False)
    name: str
    secrets: Keys = field(default_factory=Keys, repr=False)
    root: str = PREFIX
    changes: Callable[[bytes], Iterable[Change]] = field(default=_no_changes, repr=False)
    managed: bool = False

    @cached_property
    def resources(self) -> Resources:
        """The API's kinds and those of the CRDs that the db holds."""
        definition = next(each for each in resources().all if each.kind == "CustomResourceDefinition")
        return resources(found.body for found in self._below(definition.prefix(self.root)) if not found.trouble)

    def objects(self, resource: Resource, namespace: str = "", name: str = "") -> Iterator[Object]:
        """In the order of their keys: by namespace and name. With `name`, that one or none."""
        if name:
            pair = self.source.get(resource.prefix(self.root, namespace) + name.encode())
            found = keys.place(pair.key, self.root) if pair else None
            if pair and found:
                yield _named(read(pair, found, self.secrets, self.managed), resource)
            return
        for each in self._below(resource.prefix(self.root, namespace)):
            yield _named(each, resource)

    def everything(self) -> Iterator[Object]:
        """Every object of the API, key by key."""
        for found in self._below(f"{self.root}/".encode()):
            yield self.named(found)

    def named(self, found: Object) -> Object:
        """With the kind that its key tells, where it cannot be read."""
        return _named(found, self.resources.of(found.place)) if found.trouble else found

    def places(self, prefix: bytes = b"") -> Iterator[Place]:
        """Where every object lies, or those below `prefix`; nothing is decoded."""
        for key in self.source.keys(prefix or f"{self.root}/".encode()):
            found = keys.place(key, self.root)
            if found is not None:
                yield found

    def counts(self) -> Counter[tuple[str, str, str]]:
        """Objects by (group in the key, resource, namespace): what lies below one key's parent is told apart once."""
        parents = Counter(key.rpartition(b"/")[0] for key in self.source.keys(f"{self.root}/".encode()))
        counted: Counter[tuple[str, str, str]] = Counter()
        for parent, count in parents.items():
            found = keys.place(parent + b"/name", self.root)
            if found is not None:
                counted[found[:3]] += count
        return counted

    def read(self, pair: Pair, place: Place) -> Object:
        """One value as an object, whatever revision it is of."""
        return self.named(read(pair, place, self.secrets, self.managed))

    def _below(self, prefix: bytes) -> Iterator[Object]:
        for pair in self.source.prefix(prefix):
            found = keys.place(pair.key, self.root)
            if found is not None:
                yield read(pair, found, self.secrets, self.managed)


def _named(found: Object, resource: Resource) -> Object:
    """The kind of what cannot be read is known from its key."""
    if not found.trouble:
        return found
    return replace(found, body={"apiVersion": resource.api_version, "kind": resource.kind} | found.body)
