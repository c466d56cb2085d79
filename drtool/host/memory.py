"""What glibc's malloc keeps: threads that hand large buffers on would each grow an arena of their own."""

from __future__ import annotations

import ctypes
from contextlib import suppress

M_ARENA_MAX = -8
"""malloc.h; the same as the environment variable MALLOC_ARENA_MAX."""
M_MMAP_THRESHOLD = -3
LARGE = 4 << 20
"""Bytes from which on a block is mapped alone, so that a column can grow without leaving holes. Left to itself, the
limit rises with each large block that is freed."""


def one_arena() -> None:
    """Before threads are started. Saves a backup some 30 MB, 15 more of a 2 GB db; without glibc nothing happens."""
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, LARGE)
