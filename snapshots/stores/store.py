"""What every store is: named byte strings, written whole or not at all.

A key is a relative path with "/" between its parts. Every method raises one of the errors below and nothing else that
comes from the store; every call can be made again, so that retries are a wrapper (`retrying.py`) of the same interface.
tests/contracts/ holds what each method promises, and runs on every store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol

from drtool.core.errors import DrtoolError, NotFound, UsageError

PART_SIZE = 5 << 20
LEFTOVER = ".part"


class StoreFailed(DrtoolError):
    """A store did not do what it was asked."""

    transient: ClassVar[bool] = False


class StoreUnavailable(StoreFailed):
    """It may work in a moment: no connection, a stall, a 5xx, throttling, bytes damaged on the way."""

    transient = True


class StoreDenied(StoreFailed):
    """The credentials do not allow it."""


class StoreHolds(StoreFailed):
    """An object lock or a retention rule of the store keeps the object."""


class KeyExists(StoreFailed):
    """A conditional put found the key taken."""


class KeyMissing(StoreFailed):
    """There is no such key."""

    exit_status = NotFound.exit_status


class StoreMissing(StoreFailed):
    """There is no such directory or bucket."""

    exit_status = NotFound.exit_status


@dataclass(frozen=True, slots=True)
class Stored:
    """One object of a listing; `modified` is by the store's clock, in UTC."""

    key: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class Upload:
    """An object on its way: invisible until it is completed. Parts count from 1, all but the last of `part_size`.

    `checksum` of its parts is the store's own business.
    """

    key: str
    id: str
    part_size: int
    checksum: str = ""


class Store(Protocol):
    """Small objects go whole by `put`; large ones in parts, each in memory once, read by ranges."""

    @property
    def url(self) -> str:
        """For people: never with credentials."""

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> None:
        """Write whole, replacing what is there; with `if_absent` raises KeyExists instead, atomically."""

    def begin(self, key: str, part_size: int = PART_SIZE) -> Upload:
        """Start an object in parts."""

    def part(self, upload: Upload, number: int, data: bytes) -> str:
        """Send one part, in any order, again if need be; the tag is for `complete`. Safe from several threads."""

    def complete(self, upload: Upload, tags: tuple[str, ...]) -> None:
        """Make the object visible, whole and durable; `tags` in the parts' order, at least one."""

    def abort(self, upload: Upload) -> None:
        """Forget an upload; no error where it is gone already."""

    def size(self, key: str) -> int:
        """Bytes of the object. Raises KeyMissing."""

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Exactly the bytes that lie there, fewer only at the object's end. Raises KeyMissing."""

    def list(self, prefix: str) -> Iterator[Stored]:
        """Every object whose key begins with `prefix` (empty, or ending in "/"), in key order; whole, or it raises."""

    def delete(self, key: str) -> None:
        """No error where it is gone already. Raises StoreHolds where the store keeps it."""

    def give_up(self) -> None:
        """From now on nothing is tried twice: the run ends, and waits for nothing but what it has begun."""

    def sweep(self, prefix: str, before: datetime) -> int:
        """Forget uploads below `prefix` that were begun before that moment and never completed; how many."""


def checked(key: str) -> str:
    """The key itself, where it can be one: no empty, hidden-part or upward component. Raises UsageError."""
    parts = key.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or key.endswith(LEFTOVER):
        raise UsageError(f"{key!r} is no name that a store can hold")
    return key


def pieces(store: Store, key: str, size: int | None = None, length: int = PART_SIZE) -> Iterator[bytes]:
    """A stored object from its beginning to its end, `length` bytes at a time. Raises KeyMissing."""
    whole = store.size(key) if size is None else size
    for offset in range(0, whole, length):
        yield store.read(key, offset, min(length, whole - offset))


def whole(store: Store, key: str, limit: int = 64 << 20) -> bytes:
    """A small object; StoreFailed where it is larger than `limit` bytes."""
    data = store.read(key, 0, limit + 1)
    if len(data) > limit:
        raise StoreFailed(f"{store.url}/{key} is larger than {limit} bytes: not what drtool writes there")
    return data
