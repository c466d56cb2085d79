"""What the screens show: results of commands, gathered behind the screen, each with the time it was learned.

Nothing here decides anything. A command that fails leaves `problem`, so that a screen says since when and why it does
not know, and is never blank.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from drtool.core.errors import DrtoolError

T = TypeVar("T")


@dataclass(frozen=True)
class Known(Generic[T]):
    """The last answer to a question, when it was asked for, and what came of asking again."""

    value: T | None = None
    since: datetime | None = None
    asked: datetime | None = None
    problem: str = ""

    def words(self) -> str:
        """Why there is no value: "asking ..." or "unknown since 12:03: connection refused"."""
        if self.problem:
            at = f"{self.since:%H:%M}" if self.since else "?"
            return f"unknown since {at}: {self.problem}"
        return "asking ..." if self.value is None else ""


@dataclass
class Session:
    """Questions by name, each a function that a thread may run. `changed` is called from that thread."""

    questions: dict[str, Callable[[], Any]]
    changed: Callable[[str], None] = lambda _: None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _known: dict[str, Known[Any]] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def known(self, name: str) -> Known[Any]:
        """What is known now; asks in a thread of its own the first time."""
        self.ask(name)
        return self.learned(name)

    def learned(self, name: str) -> Known[Any]:
        """As `known`, without asking."""
        return self._known.get(name, Known())

    def ask(self, name: str, again: bool = False) -> None:
        with self._news:
            if name not in self.questions or (name in self._asked and not again):
                return
            self._asked.add(name)
        threading.Thread(target=self._answer, args=(name, self.clock()), daemon=True, name=f"asking-{name}").start()

    def wait(self, name: str, seconds: float) -> None:
        """Asks, and gives the answer that long."""
        self.ask(name)
        with self._news:
            self._news.wait_for(lambda: name in self._known, seconds)

    def was_asked(self, name: str) -> bool:
        return name in self._asked

    def _answer(self, name: str, asked: datetime) -> None:
        problem, value = "", self._known.get(name, Known()).value
        try:
            value = self.questions[name]()
        except DrtoolError as error:
            problem = error.what
        except OSError as error:
            problem = error.strerror or str(error)
        except Exception as error:  # noqa: BLE001 - a screen says what went wrong instead of taking the program down
            problem = f"{type(error).__name__}: {error}"
        with self._news:
            self._known[name] = Known(value, self.clock(), asked, problem)
            self._news.notify_all()
        self.changed(name)

    def close(self) -> None:
        """Lets go of what answers hold open."""
        for known in self._known.values():
            close = getattr(known.value, "close", None)
            if close is not None:
                close()
