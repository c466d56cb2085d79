"""A bounded pipe between two threads that tells each end of the other's failure."""

from __future__ import annotations

import threading
from collections import deque

CAPACITY = 1 << 20


class Pipe:
    """Bytes in order; holds at most about `capacity` of them. Either end may `fail`, and both then raise that error."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._capacity = capacity
        self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._current = memoryview(b"")

    def write(self, piece: bytes) -> int:
        """Blocks while the pipe is full."""
        with self._changed:
            while self._held >= self._capacity and self._error is None:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            if piece:
                self._pieces.append(piece)
                self._held += len(piece)
                self._changed.notify_all()
        return len(piece)

    def flush(self) -> None:
        """For writers that expect a file."""

    def close(self) -> None:
        """No more will be written; the reader gets what is there and then the end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """The first error stays."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def read(self, size: int = -1) -> bytes:
        """One to `size` bytes (a whole piece when negative), or b"" at the end. Not for two readers."""
        if size < 0 and not self._current:
            return self._next()
        if not self._current:
            self._current = memoryview(self._next())
        cut = len(self._current) if size < 0 else min(size, len(self._current))
        taken, self._current = self._current[:cut], self._current[cut:]
        return bytes(taken)

    def _next(self) -> bytes:
        with self._changed:
            while not self._pieces and not self._closed and self._error is None:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            if not self._pieces:
                return b""
            piece = self._pieces.popleft()
            self._held -= len(piece)
            self._changed.notify_all()
            return piece
