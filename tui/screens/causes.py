"""Causes in the order to repair, what each explains folded beneath, then risks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from drtool.core.causes import Judged, Verdict
from drtool.core.report import Role
from tui.glance import Glance
from tui.screens.listing import Listing
from tui.widgets.rows import Row


class Causes(Listing):
    NAME = "Causes"
    QUESTION = "glance"

    KEYS = (("f", "fix"),)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("f", "fix", "the plan that fixes this")]

    def rows(self, value: object) -> Sequence[Row]:
        assert isinstance(value, Glance)  # noqa: S101 - the type of this question's answer
        return cause_rows((self.drtool.glance() or value).verdict)

    def action_fix(self) -> None:
        judged = self.current()
        if not isinstance(judged, Judged) or judged.finding.fix is None:
            self.notify("no command of drtool fixes this: Enter says what to do", timeout=5)
            return
        self.drtool.plan(judged.finding.fix.command.removeprefix("drtool "))

    def detail(self, row: Row) -> Sequence[str]:
        return finding_lines(row.subject) if isinstance(row.subject, Judged) else (row.text,)

    def nothing(self) -> str:
        return "no cause of an outage found"


def cause_rows(verdict: Verdict) -> list[Row]:
    found = verdict.findings
    rows = []
    for number, judged in enumerate((j for j in found if j.role is Role.CAUSE), 1):
        rows.append(Row(f"{number}. [{judged.severity}] {judged.finding.title}", "bold", judged))
        follows = [j for j in found if j.role is Role.CONSEQUENCE and j.caused_by[:1] == (judged.id,)]
        rows += [Row(f"     follows: {j.finding.title}", "", j) for j in follows]
    rows += [Row(f"risk [{j.severity}] {j.finding.title}", "", j) for j in found if j.role is Role.RISK]
    return rows


def finding_lines(judged: Judged) -> list[str]:
    finding = judged.finding
    lines = [f"{judged.id} [{judged.severity}] {judged.role}", finding.title]
    lines += [f"  {evidence}" for evidence in finding.evidence]
    if finding.fix:
        lines += [f"fix: {finding.fix.command}", f"     {finding.fix.summary}"]
    if judged.caused_by:
        lines.append(f"caused by: {', '.join(judged.caused_by)}")
    return lines
