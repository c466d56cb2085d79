"""Running checks: what each ending becomes, and that a crash takes nothing with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from drtool.core.check import Check, EvidenceMissing, NotApplicable, run, run_one
from drtool.core.report import Finding, Layer, Severity, Status


def check(find: Callable[[object], Iterator[Finding]], id_: str = "c") -> Check:
    return Check(id_, Layer.HOST, Severity.ERROR, "", find)


def nothing(_: object) -> Iterator[Finding]:
    yield from ()


def missing(_: object) -> Iterator[Finding]:
    yield from ()
    raise EvidenceMissing("no such file")


def other(_: object) -> Iterator[Finding]:
    yield from ()
    raise NotApplicable("another kind of node")


def crash(_: object) -> Iterator[Finding]:
    yield Finding("seen before it")
    raise KeyError("x")


def gap(_: object) -> Iterator[Finding]:
    yield Finding("seen before the gap")
    raise EvidenceMissing("the rest")


@pytest.mark.parametrize(
    ("find", "status", "reason", "count"),
    [
        (nothing, Status.PASSED, "", 0),
        (missing, Status.UNKNOWN, "no such file", 0),
        (other, Status.SKIPPED, "another kind of node", 0),
        (crash, Status.BROKEN, "KeyError: 'x'", 1),
        (gap, Status.FAILED, "the rest", 1),
    ],
)
def test_endings(find: Callable[[object], Iterator[Finding]], status: Status, reason: str, count: int) -> None:
    outcome = run_one(check(find), None)
    assert (outcome.status, outcome.reason, len(outcome.findings)) == (status, reason, count)


def test_a_crash_does_not_stop_the_others() -> None:
    found = run([check(crash, "a"), check(nothing, "b")], None)
    assert [outcome.status for outcome in found] == [Status.BROKEN, Status.PASSED]
