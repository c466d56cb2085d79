"""What a check looks for, why it matters, how to fix it: the check's own docstring."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from drtool.commands.check import all_checks
from drtool.core.check import Check
from drtool.core.errors import UsageError

SUGGESTIONS = 3


def explain(id_: str) -> Check:
    """UsageError names the nearest ids where there is no check of that one."""
    checks = {check.id: check for check in all_checks()}
    if id_ not in checks:
        near = _nearest(id_, checks)
        hint = f"did you mean {' or '.join(near)}?" if near else "`drtool explain` lists them"
        raise UsageError(f"there is no check {id_}", hint)
    return checks[id_]


def _nearest(id_: str, known: Iterable[str]) -> list[str]:
    """By likeness; else by the words that they share."""
    known = tuple(known)
    wanted = id_.lower().replace("_", "-")
    close = difflib.get_close_matches(wanted, known, SUGGESTIONS)
    words = {word for word in wanted.split("-") if len(word) > 2}
    return close or [other for other in known if words & set(other.split("-"))][:SUGGESTIONS]


def listed() -> tuple[Check, ...]:
    """Every check, by layer and then by id: the order of blame."""
    return tuple(sorted(all_checks(), key=lambda check: (check.layer, check.id)))


def as_data(checks: Iterable[Check]) -> dict[str, Any]:
    return {"schemaVersion": 1, "checks": [_record(check) for check in checks]}


def _record(check: Check) -> dict[str, Any]:
    return {
        "id": check.id,
        "severity": str(check.severity),
        "layer": check.layer.name.lower(),
        "title": title(check),
        "explanation": check.explanation,
        "explains": list(check.explains),
    }


def title(check: Check) -> str:
    return check.explanation.partition("\n")[0]
