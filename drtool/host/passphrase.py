"""Who is asked for a passphrase. Nobody, unless a command line on a terminal says so; threads of the UI ask nobody."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from drtool.core.errors import CannotOpen

ASK: ContextVar[Callable[[str], str] | None] = ContextVar("ASK", default=None)


def passphrase(path: str) -> str:
    """Raises CannotOpen where nobody is here to give it."""
    ask = ASK.get()
    if ask is None:
        raise CannotOpen(
            f"{path} is protected by a passphrase, and nobody is here to give it",
            "run the command on a terminal, or name an identity without one",
        )
    return ask(path)
