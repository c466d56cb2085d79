"""Progress of long work, sent to a callback; what shows it decides how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` bytes (or of `unit`) of a phase; `total` is None while it is not known."""

    phase: str
    done: int = 0
    total: int | None = None
    unit: str = "bytes"


Listener = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """For callers that do not want to know."""
