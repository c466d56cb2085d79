"""Tries on a store everything that a backup will ask of it, deletion included, and what it does to bytes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from drtool.core.errors import DrtoolError
from snapshots.stores.store import KeyExists, KeyMissing, Store, StoreFailed, pieces, whole

SIZE = 6 << 20
PART = 5 << 20
MAX_SKEW = 300.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was tried; `problem` is empty where it went well."""

    name: str
    problem: str = ""
    hint: str = ""


class _Wrong(Exception):
    """A trial's own verdict."""


def probe(store: Store) -> tuple[Trial, ...]:
    """All trials, in order. What they leave is deleted, as far as the store lets."""
    prefix = f"probe/{secrets.token_hex(6)}"
    done = tuple(_tried(name, trial) for name, trial in _trials(store, prefix))
    with suppress(StoreFailed):
        store.sweep(f"{prefix}/", datetime.now(UTC) + timedelta(minutes=10))
        for stored in store.list(f"{prefix}/"):
            store.delete(stored.key)
    return done


def _tried(name: str, trial: Callable[[], None]) -> Trial:
    try:
        trial()
    except _Wrong as wrong:
        return Trial(name, str(wrong))
    except DrtoolError as failed:
        return Trial(name, failed.what, failed.hint)
    return Trial(name)


def _trials(store: Store, prefix: str) -> Iterator[tuple[str, Callable[[], None]]]:
    small, large = os.urandom(1000), os.urandom(SIZE)
    key, big = f"{prefix}/small", f"{prefix}/large"

    def list_keys() -> None:
        if key not in [stored.key for stored in store.list(f"{prefix}/")]:
            raise _Wrong("an object that was just written is not in the listing")

    def read() -> None:
        found = whole(store, key)
        if found != small:
            raise _Wrong(_difference(small, found))

    def conditional() -> None:
        try:
            store.put(key, b"replaced", if_absent=True)
        except KeyExists:
            return
        raise _Wrong("a conditional put replaced an object: two runs at once could not be told apart")

    def multipart() -> None:
        upload = store.begin(big, PART)
        tags = tuple(
            store.part(upload, number, large[(number - 1) * PART : number * PART])
            for number in range(1, -(-SIZE // PART) + 1)
        )
        store.complete(upload, tags)

    def read_large() -> None:
        found = b"".join(pieces(store, big))
        if found != large:
            raise _Wrong(_difference(large, found))

    def abort() -> None:
        upload = store.begin(f"{prefix}/aborted", PART)
        store.part(upload, 1, small)
        store.abort(upload)
        store.sweep(f"{prefix}/", datetime.now(UTC))

    def clock() -> None:
        store.put(key, small)
        modified = next(stored.modified for stored in store.list(f"{prefix}/") if stored.key == key)
        skew = (datetime.now(UTC) - modified).total_seconds()
        if abs(skew) > MAX_SKEW:
            raise _Wrong(f"this machine's clock and the store's differ by {skew:.0f} s")

    def delete() -> None:
        for one in (key, big):
            store.delete(one)
            try:
                store.size(one)
            except KeyMissing:
                continue
            raise _Wrong("an object that was deleted is still there")

    yield "write", lambda: store.put(key, small)
    yield "list", list_keys
    yield "read back", read
    yield "conditional write", conditional
    yield "upload in parts", multipart
    yield "read back parts", read_large
    yield "abort an upload", abort
    yield "clock", clock
    yield "delete", delete


def _difference(sent: bytes, found: bytes) -> str:
    """Stores that do not know aws-chunked bodies keep the SDK's chunk headers and checksum trailer in the object."""
    if sent in found or b"x-amz-checksum" in found:
        return (
            f"the store wrote a checksum trailer or chunk headers into the object ({len(found)} bytes of {len(sent)})"
        )
    return f"what was read back is not what was written ({len(found)} for {len(sent)} bytes)"
