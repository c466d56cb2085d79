"""The sha256 that a snapshot ends with, checked as the bytes pass (server/etcdserver/api/v3rpc/maintenance.go)."""

from __future__ import annotations

import hashlib

SIZE = 32
SECTOR = 512


class Trailer:
    """Feeds on a snapshot's pieces and holds the last 32 bytes back: they are the hash of all before."""

    __slots__ = ("_sha", "_tail", "size")

    def __init__(self) -> None:
        self._sha = hashlib.sha256()
        self._tail = b""
        self.size = 0

    def feed(self, piece: bytes | memoryview) -> None:
        self.size += len(piece)
        if len(piece) < SIZE:
            piece = self._tail + bytes(piece)
        elif self._tail:
            self._sha.update(self._tail)
        cut = max(len(piece) - SIZE, 0)
        with memoryview(piece) as view:
            self._sha.update(view[:cut])
            self._tail = bytes(view[cut:])

    @property
    def holds(self) -> bool | None:
        """None where the length says that there is none: a db ends with a sector, a snapshot with a hash after it."""
        if self.size % SECTOR != SIZE:
            return None
        return self._sha.digest() == self._tail

    @property
    def before(self) -> str:
        """sha256 of everything but the last 32 bytes, lower hex."""
        return self._sha.hexdigest()

    @property
    def whole(self) -> str:
        """sha256 of everything, lower hex."""
        sha = self._sha.copy()
        sha.update(self._tail)
        return sha.hexdigest()
