"""The first answer, from a process of its own: it judges the node while this one still loads the screens.

Most of the wait for the first screen is spent on imports, of the checks and of Textual; side by side they take half.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """`work` begun in a child of this process, which must have no other thread yet; its answer can be pickled."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        reader, writer = os.pipe()
        self._child: int | None = os.fork()
        if self._child == 0:
            _answer(work, writer)
        os.close(writer)
        self._pipe = os.fdopen(reader, "rb")

    def answer(self) -> T:
        """Waits for the child's answer. Where it had none, and from the second time on, the work is done here."""
        answered = b"" if self._pipe.closed else self._pipe.read()
        self.end()
        if not answered:
            return self._work()
        found: T = pickle.loads(answered)  # noqa: S301 - written by this process's own child
        return found

    def end(self) -> None:
        """The child goes with its parent, whatever it still waits for."""
        child, self._child = self._child, None
        if child is not None:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self._pipe.close()


def _answer(work: Callable[[], Any], writer: int) -> None:
    """Never returns; says nothing where the work fails, so that it is tried, and its failure told, by the parent."""
    with suppress(BaseException), os.fdopen(writer, "wb") as pipe:
        pipe.write(pickle.dumps(work()))
    os._exit(0)
