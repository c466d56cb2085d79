"""A while without root's rights, to see what an ordinary user sees. Below a 0700 directory nothing is in reach."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """As an ordinary user; where the tests are run by one, nothing changes."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@contextmanager
def reachable() -> Iterator[Path]:
    """A directory that everyone may enter; pytest's are their owner's alone."""
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def close(directory: Path) -> None:
    """Nobody may list it: to its owner, where that is not root, neither."""
    directory.chmod(0o700 if os.geteuid() == 0 else 0)
