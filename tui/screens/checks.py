"""Every check with what became of it, and its explanation."""

from __future__ import annotations

from collections.abc import Sequence

from drtool.commands.check import Report
from drtool.core.check import Check
from drtool.core.report import Outcome, Status
from tui.screens.listing import Listing
from tui.widgets.rows import Row

ORDER = {Status.FAILED: 0, Status.BROKEN: 1, Status.UNKNOWN: 2, Status.PASSED: 3, Status.SKIPPED: 4}


class Checks(Listing):
    NAME = "Checks"
    QUESTION = "check"

    def rows(self, value: object) -> Sequence[Row]:
        assert isinstance(value, Report)  # noqa: S101 - the type of this question's answer
        value = self.drtool.report() or value
        known = {check.id: check for check in value.checks}
        ordered = sorted(value.outcomes, key=lambda outcome: (ORDER[outcome.status], outcome.id))
        return [_row(outcome, known[outcome.id]) for outcome in ordered]

    def detail(self, row: Row) -> Sequence[str]:
        if not isinstance(row.subject, tuple):
            return (row.text,)
        outcome, check = row.subject
        lines = [f"{outcome.id} [{check.severity}]: {outcome.status} {outcome.reason}".rstrip()]
        for finding in outcome.findings:
            lines += [finding.title, *(f"  {evidence}" for evidence in finding.evidence)]
        return [*lines, "", *check.explanation.splitlines()]


def _row(outcome: Outcome, check: Check) -> Row:
    style = {Status.FAILED: "bold", Status.BROKEN: "bold"}.get(outcome.status, "")
    text = f"{outcome.status:8} {outcome.id:36} {outcome.reason}".rstrip()
    return Row(text, style, (outcome, check))
