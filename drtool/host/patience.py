"""Bounds on waiting: what a kernel, a disk or a peer may never answer runs in a thread that can be left behind.

Daemon threads, not an executor: Python waits for an executor's threads at exit, and a read from a dead disk cannot be
interrupted.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K")


@dataclass
class Patience:
    """How long single calls may take, and all that were given up together; after that each gets a moment only."""

    seconds: float = 5.0
    budget: float = 20.0
    moment: float = 0.2

    def spend(self, call: Callable[[], T], otherwise: T) -> T:
        """What `call` returns, or `otherwise` where that takes too long. Its exceptions are the caller's."""
        allowed = self.seconds if self.budget > 0 else self.moment
        answers = together({"": call}, allowed)
        if "" not in answers:
            self.budget -= allowed
            return otherwise
        answer = answers[""]
        if isinstance(answer, Exception):
            raise answer
        return answer


def together(calls: Mapping[K, Callable[[], T]], seconds: float) -> dict[K, T | Exception]:
    """Runs the calls at the same time and returns what has come within `seconds`: a result, or the exception raised.

    A call that is not among the answers still hangs; its thread is left behind.
    """
    done: queue.SimpleQueue[tuple[K, T | Exception]] = queue.SimpleQueue()

    def run(key: K, call: Callable[[], T]) -> None:
        try:
            done.put((key, call()))
        except Exception as failed:  # noqa: BLE001 - handed to the caller
            done.put((key, failed))

    for key, call in calls.items():
        threading.Thread(target=run, args=(key, call), daemon=True).start()
    answers: dict[K, T | Exception] = {}
    end = time.monotonic() + seconds
    while len(answers) < len(calls):
        try:
            key, answer = done.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        answers[key] = answer
    return answers
