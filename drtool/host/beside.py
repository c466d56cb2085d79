"""A computation in a child process beside this one, for work that holds the interpreter's lock.

A child is forked, so that it reads the same mapping; its result comes back through a pipe (marshal: numbers, bytes,
tuples, dicts, sets). Where forking is not safe or of no use (other threads, one core), the work is done when its
result is asked for. Work that comes when there are other threads already has its child forked before (later.py).
"""

from __future__ import annotations

import fcntl
import marshal
import os
import signal
import termios
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

Outcome = TypeVar("Outcome")


def possible() -> bool:
    """Libraries have threads that Python does not count: those of gRPC do not survive a fork."""
    try:
        threads = len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return False
    return threads == 1 and len(os.sched_getaffinity(0)) > 1


@contextmanager
def beside(work: Callable[[], Outcome]) -> Iterator[Callable[[], Outcome]]:
    """Yields what waits for the result; the child is gone when the block ends. What fails there is done again here."""
    if not possible():
        yield work
        return
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        work_in_child(work, marshal.dumps, receiving, sending)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        try:
            yield lambda: result_of(pipe.read(), marshal.loads, work)
        finally:
            end(child)


class Pieces:
    """Pieces of work for a process and its child: one from the front at a time, or at last a share from the end.

    A byte in a pipe stands for each, so that none is taken twice.
    """

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def one(self) -> bool:
        return bool(os.read(self._pipe, 1))

    def share(self, busy: int = 0) -> int:
        """How many were taken; the other process has work of its own left, of the length of `busy` pieces."""
        left = array("i", [0])
        fcntl.ioctl(self._pipe, termios.FIONREAD, left)
        return len(os.read(self._pipe, min((left[0] + busy) // 2, left[0]))) if left[0] else 0


@contextmanager
def pieces(count: int) -> Iterator[Pieces]:
    """As many as a pipe has room for in its one page: 4,096 or fewer."""
    receiving, sending = os.pipe()
    with os.fdopen(receiving, "rb", 0):
        with os.fdopen(sending, "wb", 0) as pipe:
            pipe.write(bytes(count))
        yield Pieces(receiving)


def end(child: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def work_in_child(work: Callable[[], Any], dump: Callable[[Any], bytes], receiving: int, sending: int) -> None:
    """Never returns: nothing of the parent's may run twice."""
    status = 1
    try:
        os.close(receiving)
        data = dump(work())
        with os.fdopen(sending, "wb") as pipe:
            pipe.write(data)
        status = 0
    finally:
        os._exit(status)


def result_of(data: bytes, load: Callable[[bytes], Outcome], work: Callable[[], Outcome]) -> Outcome:
    """A whole object or, where the child fell over, the same work here, so that its error is raised here too."""
    try:
        return load(data)
    except (EOFError, ValueError, TypeError):
        return work()
