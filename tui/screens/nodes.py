"""Several roots or bundles side by side: one line a node, its causes as details."""

from __future__ import annotations

from collections.abc import Sequence

from drtool.commands.check import Report
from tui.screens.causes import cause_rows
from tui.screens.listing import Listing
from tui.widgets.rows import Row


class Nodes(Listing):
    NAME = "Nodes"
    QUESTION = "nodes"

    def rows(self, value: object) -> Sequence[Row]:
        assert isinstance(value, tuple)  # noqa: S101 - the type of this question's answer
        return [_row(report) for report in value]

    def detail(self, row: Row) -> Sequence[str]:
        if not isinstance(row.subject, Report):
            return (row.text,)
        return [found.text for found in cause_rows(row.subject.verdict)] or ["no cause of an outage found"]


def _row(report: Report) -> Row:
    node = report.node
    version = "v" + ".".join(map(str, node.kubernetes)) if node.kubernetes else "version unknown"
    causes = ", ".join(report.verdict.root_causes) or "no cause found"
    return Row(f"{node.name or 'unnamed':16} {node.layout!s:22} {version:10} {causes}", "", report)
