"""The same store, asked again: what may work in a moment is tried until a budget of seconds is spent."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from snapshots.stores.store import PART_SIZE, KeyExists, Store, Stored, StoreFailed, Upload

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 20.0
Result = TypeVar("Result")


@dataclass(slots=True)
class Patience:
    """Seconds left for waiting and trying again, for all calls of a run together."""

    left: float
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spend(self, seconds: float) -> bool:
        """False where nothing is left."""
        with self._lock:
            self.left -= seconds
            return self.left > 0


@dataclass(frozen=True, slots=True)
class RetryingStore:
    """Only transient errors are retried, with growing, random pauses; the last error comes out."""

    inner: Store
    patience: Patience

    @property
    def url(self) -> str:
        return self.inner.url

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> None:
        """A conditional put whose answer was lost finds its own bytes there the next time: that is success."""
        tries = 0

        def once() -> None:
            nonlocal tries
            tries += 1
            try:
                self.inner.put(key, data, if_absent=if_absent)
            except KeyExists:
                if tries == 1 or self.inner.read(key, 0, len(data) + 1) != data:
                    raise

        self._try(once)

    def begin(self, key: str, part_size: int = PART_SIZE) -> Upload:
        return self._try(lambda: self.inner.begin(key, part_size))

    def part(self, upload: Upload, number: int, data: bytes) -> str:
        return self._try(lambda: self.inner.part(upload, number, data))

    def complete(self, upload: Upload, tags: tuple[str, ...]) -> None:
        self._try(lambda: self.inner.complete(upload, tags))

    def abort(self, upload: Upload) -> None:
        self._try(lambda: self.inner.abort(upload))

    def size(self, key: str) -> int:
        return self._try(lambda: self.inner.size(key))

    def read(self, key: str, offset: int, length: int) -> bytes:
        return self._try(lambda: self.inner.read(key, offset, length))

    def list(self, prefix: str) -> Iterator[Stored]:
        return iter(self._try(lambda: tuple(self.inner.list(prefix))))

    def delete(self, key: str) -> None:
        self._try(lambda: self.inner.delete(key))

    def give_up(self) -> None:
        self.patience.left = 0.0

    def sweep(self, prefix: str, before: datetime) -> int:
        return self._try(lambda: self.inner.sweep(prefix, before))

    def _try(self, call: Callable[[], Result]) -> Result:
        longest = FIRST_PAUSE
        while True:
            began = self.patience.clock()
            try:
                return call()
            except StoreFailed as failed:
                pause = random.uniform(longest / 2, longest)  # noqa: S311 - spreads clients, hides nothing
                if not failed.transient or not self.patience.spend(self.patience.clock() - began + pause):
                    raise
            self.patience.pause(pause)
            longest = min(2 * longest, LONGEST_PAUSE)
