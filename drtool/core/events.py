"""Progress of long work, sent to a callback; what shows it decides how often. And what a person must hear meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
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


def nobody(_: str) -> None:
    """Threads of the UI tell nobody: a line on stderr would tear its screen."""


TELL: ContextVar[Callable[[str], None]] = ContextVar("TELL", default=nobody)
"""Takes one line that work which goes on has to say; a command line puts it on stderr."""
