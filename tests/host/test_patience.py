from __future__ import annotations

import threading

import pytest

from drtool.host.patience import Patience, together


def test_answers_and_failures_come_back_and_what_hangs_does_not() -> None:
    never = threading.Event()

    def fails() -> str:
        raise OSError("broken")

    answers = together({"fast": lambda: "done", "fails": fails, "hangs": lambda: str(never.wait())}, 2.0)
    never.set()
    assert answers["fast"] == "done"
    assert isinstance(answers["fails"], OSError)
    assert "hangs" not in answers


def test_patience_gives_up_and_then_waits_a_moment_only() -> None:
    never = threading.Event()
    patience = Patience(seconds=0.05, budget=0.05, moment=30.0)
    assert patience.spend(lambda: str(never.wait()), "gave up") == "gave up"
    assert patience.budget <= 0
    assert patience.spend(lambda: "still works", "gave up") == "still works"
    never.set()


def test_an_exception_is_the_callers() -> None:
    def fails() -> int:
        raise PermissionError("no")

    with pytest.raises(PermissionError):
        Patience().spend(fails, 0)
