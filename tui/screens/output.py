"""What a command printed, while it runs and after: a plan that was asked for, a verification, a drill."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from tui.running import Running
from tui.widgets.rows import Row, Rows, plain, wrapped

if TYPE_CHECKING:
    from tui.app import DrtoolApp

POLL = 0.2


class Output(Screen[None]):
    """`agree` is the cluster's name to type before `then` is run; "" where there is nothing to agree to."""

    DEFAULT_CSS = """
    Output > #head, Output > #foot { height: 1; }
    Output > #head { text-style: bold; }
    Output > #answer { height: 1; border: none; padding: 0; display: none; }
    Output > #answer.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "back"),
        Binding("A", "apply", "carry out"),
        Binding("w", "write", "write to file"),
    ]

    def __init__(self, running: Running, agree: str = "", then: str = "") -> None:
        super().__init__()
        self.running = running
        self.agree = agree
        self.then = then
        self._shown = -1

    @property
    def drtool(self) -> DrtoolApp:
        from tui.app import DrtoolApp

        assert isinstance(self.app, DrtoolApp)  # noqa: S101 - this screen belongs to no other app
        return self.app

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield Rows(pointer=False, id="lines")
        answer = Input(id="answer", compact=True, select_on_focus=False)
        answer.can_focus = False
        yield answer
        yield Static(id="foot", markup=False)

    def on_mount(self) -> None:
        self.query_one("#lines").focus()
        self.set_interval(POLL, self.update)
        self.update()

    def on_unmount(self) -> None:
        self.running.close()

    def update(self) -> None:
        status = self.running.status()
        state = "running" if status is None else "done" if status == 0 else f"exit status {status}"
        self.query_one("#head", Static).update(Content(plain(f"drtool {self.running.words}: {state}")))
        lines = self.running.lines()
        rows = self.query_one("#lines", Rows)
        if len(lines) != self._shown:
            self._shown = len(lines)
            rows.show([Row(part) for line in lines for part in wrapped(line, rows.size.width or self.size.width)])
        ask = " A:carry it out" if self.agree and status == 0 else ""
        self.query_one("#foot", Static).update(Content(f"Esc:back w:write to file{ask}"))

    def action_apply(self) -> None:
        if not self.agree or self.running.status() != 0:
            return
        answer = self.query_one("#answer", Input)
        answer.placeholder = f"type the cluster's name ({self.agree}) to carry it out"
        answer.can_focus = True
        answer.add_class("open")
        answer.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        answer = self.query_one("#answer", Input)
        answer.remove_class("open")
        answer.can_focus = False
        self.query_one("#lines").focus()
        typed, answer.value = event.value, ""
        if typed != self.agree:
            self.notify(f"{typed!r} is not {self.agree!r}: nothing was done", markup=False, timeout=5)
            return
        self.running.close()
        self.running = Running(self.then, detached=True)
        self.agree = ""

    def action_leave(self) -> None:
        answer = self.query_one("#answer", Input)
        if answer.has_class("open"):
            answer.remove_class("open")
            answer.can_focus = False
            self.query_one("#lines").focus()
            return
        self.app.pop_screen()
        self.drtool.changed_by_command()

    def action_write(self) -> None:
        self.drtool.write_panel(self.running.words.partition(" ")[0], self.running.lines())
