"""Plans of this node: steps, how far they are, what they change in each text, resume and undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from drtool.commands.carrying import Carried, Unread, diff
from drtool.core.plan import Phase
from tui.screens.listing import Listing
from tui.widgets.rows import Row


class Plans(Listing):
    NAME = "Plans"
    QUESTION = "plans"
    KEYS = (("u", "undo"), ("C", "resume"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "take_back", "take this plan back"),
        Binding("C", "resume", "go on with this plan"),
    ]
    REFRESH = 2.0

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(self.REFRESH, self.action_again)

    def rows(self, value: object) -> Sequence[Row]:
        assert isinstance(value, tuple)  # noqa: S101 - the type of this question's answer
        return [_row(one) for one in reversed(value)]

    def detail(self, row: Row) -> Sequence[str]:
        if not isinstance(row.subject, Carried):
            return (row.text,)
        one = row.subject
        steps = [f"{'x' if n <= one.state.applied else ' '} {line}" for n, line in enumerate(one.plan.lines(), 1)]
        kept = [f"kept: {kept.path} ({kept.size} bytes)" for kept in one.kept]
        failure = [f"failed: {one.state.failure}"] if one.state.failure else []
        return [f"{one.plan.title} ({one.state.phase})", *failure, *steps, *kept, *diff(self.drtool.root, one.plan)]

    def nothing(self) -> str:
        return "no plan was ever carried out on this node"

    def action_take_back(self) -> None:
        if isinstance(one := self.current(), Carried):
            self.drtool.agree_and_run(one.plan.lines(), f"undo {one.plan.id}", one.plan.cluster)

    def action_resume(self) -> None:
        if isinstance(one := self.current(), Carried) and one.state.phase is Phase.UNFINISHED:
            self.drtool.agree_and_run(one.plan.lines(), f"resume {one.plan.id}", one.plan.cluster)


def _row(one: Carried | Unread) -> Row:
    style = "bold" if one.state.phase is Phase.UNFINISHED else ""
    steps = len(one.plan.steps) if isinstance(one, Carried) else "?"
    text = f"{one.id:40} {one.state.phase!s:12} {one.state.applied}/{steps}  {one.title}"
    return Row(text, style, one)
