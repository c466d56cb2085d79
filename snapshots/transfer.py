"""Large objects to and from a store: parts sent while the next one fills, pieces fetched ahead of their reader."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from drtool.core.errors import DrtoolError, Unsound
from drtool.core.events import Listener, Progress, silent
from snapshots.catalog import Part
from snapshots.seal import opened
from snapshots.stores.store import PART_SIZE, Store, Upload

IN_FLIGHT = 2
AHEAD = 2
GATHER = 1 << 20


class Sending:
    """An object being written: `write` takes bytes of any length, `finish` makes it visible.

    A context manager; leaving it without `finish` aborts the upload. What is smaller than one part goes by one put.
    Holds at most IN_FLIGHT + 2 parts in memory. An error of the store comes out of a later `write` or `finish`.
    """

    def __init__(self, store: Store, key: str, part_size: int = PART_SIZE) -> None:
        self._store = store
        self._key = key
        self._part_size = part_size
        self._filling: list[bytes] = []
        self._filled = 0
        self._upload: Upload | None = None
        self._tags: list[str] = []
        self._flying: deque[Future[str]] = deque()
        self._number = 0
        self._sender = ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="store")
        self._done = False

    def __enter__(self) -> Sending:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        self._sender.shutdown(wait=True, cancel_futures=True)
        if self._upload is not None and not self._done:
            with suppress(DrtoolError):
                self._store.abort(self._upload)

    def write(self, data: bytes) -> None:
        while self._filled + len(data) >= self._part_size:
            cut = self._part_size - self._filled
            part = b"".join([*self._filling, data[:cut]])
            self._filling, self._filled, data = [], 0, data[cut:]
            self._send(part)
        self._filling.append(data)
        self._filled += len(data)

    def finish(self) -> None:
        rest = b"".join(self._filling)
        if self._upload is None:
            self._store.put(self._key, rest)
        else:
            if rest:
                self._send(rest)
            while self._flying:
                self._tags.append(self._flying.popleft().result())
            self._store.complete(self._upload, tuple(self._tags))
        self._done = True

    def _send(self, part: bytes) -> None:
        if self._upload is None:
            self._upload = self._store.begin(self._key, self._part_size)
        self._number += 1
        while len(self._flying) >= IN_FLIGHT:
            self._tags.append(self._flying.popleft().result())
        self._flying.append(self._sender.submit(self._store.part, self._upload, self._number, part))


def gathered(pieces: Iterable[bytes | memoryview], size: int = GATHER) -> Iterator[bytes]:
    """The same bytes in fewer pieces, each but the last of at least `size`."""
    held: list[bytes | memoryview] = []
    count = 0
    for piece in pieces:
        held.append(piece)
        count += len(piece)
        if count >= size:
            yield b"".join(held)
            held, count = [], 0
    if held:
        yield b"".join(held)


def fetched(store: Store, key: str, size: int, length: int = PART_SIZE) -> Iterator[bytes]:
    """An object's bytes in order, AHEAD pieces read before they are asked for. Raises what the store raises."""
    reader = ThreadPoolExecutor(AHEAD, thread_name_prefix="store")
    try:
        flying: deque[Future[bytes]] = deque()
        for offset in range(0, size, length):
            flying.append(reader.submit(store.read, key, offset, min(length, size - offset)))
            if len(flying) > AHEAD:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
    finally:
        reader.shutdown(wait=True, cancel_futures=True)


def sealed_pieces(store: Store, path: str, part: Part, listener: Listener = silent) -> Iterator[bytes]:
    """A part as it is stored, compared on the way: Unsound at its end where it is not what was written."""
    sha = hashlib.sha256()
    for piece in _stored(store, path, part, listener):
        sha.update(piece)
        yield piece
    if sha.hexdigest() != part.sealed_sha256:
        raise Unsound(f"{store.url}/{path}/{part.name} is not what was written: its sha256 differs", DAMAGED)


def plain_pieces(store: Store, path: str, part: Part, keys: list[Any], listener: Listener = silent) -> Iterator[bytes]:
    """A part decrypted and decompressed; Unsound (at the latest at its end) unless it is what was sealed.

    The sealed bytes get no hash of their own: age authenticates every one, and what they open to is compared.
    """
    key = f"{store.url}/{path}/{part.name}"
    sha, size = hashlib.sha256(), 0
    for piece in opened(_stored(store, path, part, listener), keys, key):
        size += len(piece)
        if size > part.plain_size:
            raise Unsound(f"{key} opens to more than the {part.plain_size} bytes that were sealed", DAMAGED)
        sha.update(piece)
        yield piece
    if size != part.plain_size or sha.hexdigest() != part.plain_sha256:
        raise Unsound(f"{key} opens to other bytes than were sealed", DAMAGED)


def _stored(store: Store, path: str, part: Part, listener: Listener) -> Iterator[bytes]:
    """Unsound where its size is not what was written."""
    key = f"{path}/{part.name}"
    found = store.size(key)
    if found != part.sealed_size:
        raise Unsound(f"{store.url}/{key} has {found} bytes, not the {part.sealed_size} that were written", DAMAGED)
    done = 0
    for piece in fetched(store, key, found):
        done += len(piece)
        listener(Progress("read back", done, found))
        yield piece


DAMAGED = "the store damaged it: use another backup, and run `drtool config check` on the store"
