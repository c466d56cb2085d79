"""A computation in a child process that is forked before the work is there, and before there are other threads.

As beside.py; what is given and the result go through pipes, pickled.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, TypeVar

from drtool.host.beside import end, possible, result_of, work_in_child

Given = TypeVar("Given")
Outcome = TypeVar("Outcome")
Begin: TypeAlias = Callable[[Given], Callable[[], Outcome]]


def at_once(work: Callable[[Given], Outcome]) -> Begin[Given, Outcome]:
    """As `later`, in this process."""
    return lambda given: lambda: work(given)


@contextmanager
def later(work: Callable[[Given], Outcome]) -> Iterator[Begin[Given, Outcome]]:
    """Yields what begins the work in a child that waits for it, and then gives what waits for the result.

    What is given and the result can be pickled. What fails there is done again here, and so is all work but the first.
    The child is gone when the block ends, and where its parent is killed.
    """
    if not possible():
        yield at_once(work)
        return
    receiving, sending = os.pipe()
    taking, giving = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(giving)
        work_in_child(lambda: _given(work, taking), pickle.dumps, receiving, sending)
    os.close(sending)
    os.close(taking)
    with os.fdopen(receiving, "rb") as results, os.fdopen(giving, "wb") as pipe:

        def begin(given: Given) -> Callable[[], Outcome]:
            if pipe.closed:
                return lambda: work(given)
            with suppress(BrokenPipeError), pipe:
                pickler = pickle.Pickler(pipe)
                pickler.fast = True  # no memo, which would hold a second copy of every array until the end
                pickler.dump(given)
            return lambda: result_of(results.read(), _unpickled, lambda: work(given))

        try:
            yield begin
        finally:
            end(child)


def _given(work: Callable[[Given], Outcome], taking: int) -> Outcome:
    with os.fdopen(taking, "rb") as pipe:
        return work(pickle.load(pipe))  # noqa: S301 - from our own parent


def _unpickled(data: bytes) -> Any:
    try:
        return pickle.loads(data)  # noqa: S301 - from our own child
    except pickle.UnpicklingError as cut:
        raise ValueError from cut
