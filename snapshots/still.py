"""A db that a running etcd writes to, as of one moment.

bbolt never writes over a page that the newest committed meta page refers to; it may do so two commits later. So a copy
that was taken while no commit came between is whole (tx.go: pages of a transaction are pending until the next one).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drtool.core.errors import Unsound
from snapshots.bolt import Bolt, parse, read_metas

TRIES = 40
PAUSE = 0.05


@contextmanager
def held_still(path: Path, largest: int) -> Iterator[Bolt]:
    """A copy in memory. Raises Unsound where the file is larger than `largest`, is no db, or does not keep still."""
    yield _copy(path, largest)


def _copy(path: Path, largest: int) -> Bolt:
    for _ in range(TRIES):
        with path.open("rb") as file:
            data = file.read(largest + 1)
            if len(data) > largest:
                raise Unsound(f"{path} is too large to be copied while etcd writes to it", "take a snapshot instead")
            file.seek(0)
            after = file.read(1 << 17)  # two pages of any size that bbolt has
        if _newest(data) == _newest(after):
            return parse(data, str(path))
        time.sleep(PAUSE)
    raise Unsound(f"{path} changes faster than it can be copied", "take a snapshot instead")


def _newest(data: bytes) -> int:
    return max((meta.txid for meta in read_metas(data) if meta is not None), default=-1)
