"""A file system that is full after a few bytes or takes none, for what must end well on such a disk."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """`place` (made here) with room for `size`, as mount writes it ("96k"). Skips where nothing can be mounted."""
    place.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "none", str(place)]
    mounted = subprocess.run(["mount", *options], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    """All below `place` as on a file system that the kernel made read-only. Skips where nothing can be mounted."""
    mounted = subprocess.run(["mount", "--bind", place, place], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
