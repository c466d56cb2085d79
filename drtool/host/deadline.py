"""A limit in seconds for a whole run, kept by the kernel's timer: a run that hangs ends itself, and cleans up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from drtool.core.errors import DrtoolError


class OutOfTime(DrtoolError):
    """The run took longer than it may."""


class _TimeIsUp(BaseException):
    """On its way to the block's end no handler of errors may take it for one of its own."""


@contextmanager
def deadline(seconds: float, what: str) -> Iterator[None]:
    """Raises OutOfTime in the block once the time is up. Only the main thread can be interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def up(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - a signal handler's arguments
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TimeIsUp:
        raise OutOfTime(
            f"{what} took longer than {seconds:g} s", "set timeouts.total, or look what it waited for"
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
