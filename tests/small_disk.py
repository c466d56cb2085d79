"""A file system that is full after a few bytes, for what must end well on a full disk."""

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
