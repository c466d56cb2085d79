"""What comes true by itself, a moment later: members of a cluster learn of a change one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 60.0

Answer = TypeVar("Answer")


def eventually(asked: Callable[[], Answer | None], what: str) -> Answer:
    """The first true answer. Fails with `what` after a minute, so that a slow machine is no failure."""
    end = time.monotonic() + SECONDS
    while not (answer := asked()):
        assert time.monotonic() < end, f"not within {SECONDS:.0f} s: {what}"
        time.sleep(0.05)
    return answer
