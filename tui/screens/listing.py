"""What every screen is: the state in two lines, a list, the details of a row below, and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from tui.session import Known
from tui.widgets.rows import Row, Rows, plain, wrapped

if TYPE_CHECKING:
    from tui.app import DrtoolApp


FRAME = 0.1


class Listing(Screen[None]):
    """A screen says what it asks (`QUESTION`), how an answer becomes rows, and what a row says in detail."""

    NAME: ClassVar[str]
    QUESTION: ClassVar[str]
    KEYS: ClassVar[tuple[tuple[str, str], ...]] = ()
    DEFAULT_CSS = """
    Listing { layout: vertical; }
    Listing > #state, Listing > #facts, Listing > #title, Listing > #keys {
        height: 1; text-wrap: nowrap; text-overflow: ellipsis;
    }
    Listing > #state { text-style: bold; }
    Listing > #title { text-style: underline; }
    Listing > #detail { height: 9; border-top: ascii; display: none; }
    Listing > #detail.open { display: block; }
    Listing > #line { height: 1; border: none; padding: 0; display: none; }
    Listing > #line.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "open_line('/')", "filter"),
        Binding("colon", "open_line(':')", "command"),
        Binding("escape", "back", "back"),
        Binding("tab", "other_pane", "pane", show=False),
        Binding("r", "again", "ask again"),
        Binding("y", "copy", "copy"),
        Binding("w", "write", "write to file"),
        Binding("p", "print", "print"),
    ]

    @property
    def drtool(self) -> DrtoolApp:
        from tui.app import DrtoolApp

        assert isinstance(self.app, DrtoolApp)  # noqa: S101 - these screens belong to no other app
        return self.app

    _count: int | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="state", markup=False)
        yield Static(id="facts", markup=False)
        yield Static(self.NAME, id="title", markup=False)
        yield Rows(id="rows")
        with Vertical(id="detail"):
            yield Rows(pointer=False, id="detail-rows")
        line = Input(id="line", compact=True, select_on_focus=False, suggester=self.drtool.completions)
        line.can_focus = False
        yield line
        yield Static(self._keys(), id="keys", markup=False)

    def on_mount(self) -> None:
        """What is known within one frame is on the first one."""
        self.drtool.session.wait(self.QUESTION, FRAME)
        self.update()
        self.query_one("#rows").focus()

    def on_screen_resume(self) -> None:
        if self.is_mounted:
            self.update()

    def update(self) -> None:
        """Shows what is known by now."""
        self.query_one("#state", Static).update(Content(plain(self.drtool.state_line())))
        self.query_one("#facts", Static).update(Content(plain(self.drtool.facts_line())))
        known: Known[Any] = self.drtool.session.known(self.QUESTION)
        rows = list(self.rows(known.value)) if known.value is not None else []
        if words := known.words():
            rows.append(Row(words, "dim"))
        self._count = len(rows) if known.value is not None else None
        self.query_one("#rows", Rows).show(rows or [Row(self.nothing(), "dim")])
        self._entitle()

    def _entitle(self) -> None:
        """How many rows, and that they are not all: a filtered list must not pass for the whole one."""
        rows = self.query_one("#rows", Rows)
        count = f" ({self._count})" if self._count is not None else ""
        if rows.wanted:
            count = f" ({len(rows.shown)} of {len(rows.rows)}, /{plain(rows.wanted)})"
        self.query_one("#title", Static).update(Content(f"{self.NAME}{count}"))

    def filter(self, wanted: str) -> None:
        self.query_one("#rows", Rows).filter(wanted)
        self._entitle()

    def rows(self, value: object) -> Sequence[Row]:
        raise NotImplementedError

    def detail(self, row: Row) -> Sequence[str]:
        """The lines that explain a row."""
        return (row.text,)

    def nothing(self) -> str:
        return "nothing here"

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows.id == "rows" and self.query_one("#detail").has_class("open"):
            self._fill(event.row)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if event.rows.id == "rows":
            self.query_one("#detail").set_class(not self.query_one("#detail").has_class("open"), "open")
            self._fill(event.row)

    def _fill(self, row: Row | None) -> None:
        lines = self.detail(row) if row is not None else ()
        panel = self.query_one("#detail-rows", Rows)
        panel.show([Row(part) for line in lines for part in wrapped(line, panel.size.width or self.size.width)])
        panel.action_jump(0)

    def action_back(self) -> None:
        """Closes what is open, innermost first; on a bare screen it goes to the first one."""
        rows = self.query_one("#rows", Rows)
        if self.query_one("#line").has_class("open"):
            self._close_line()
        elif self.query_one("#detail").has_class("open"):
            self.query_one("#detail").remove_class("open")
            rows.focus()
        elif rows.wanted:
            self.filter("")
        else:
            self.drtool.action_show("causes")

    def action_other_pane(self) -> None:
        """Tab; on the command line it takes the completion that is shown."""
        line = self.query_one("#line", Input)
        if line.has_class("open"):
            line.action_cursor_right()
        elif self.query_one("#detail").has_class("open"):
            other = "#detail-rows" if self.query_one("#rows").has_focus else "#rows"
            self.query_one(other).focus()

    def action_again(self) -> None:
        self.drtool.ask_again(self.QUESTION)

    def action_open_line(self, kind: str) -> None:
        line = self.query_one("#line", Input)
        line.can_focus = True
        line.value = kind
        line.add_class("open")
        line.focus()
        line.cursor_position = len(line.value)

    def _close_line(self) -> None:
        line = self.query_one("#line", Input)
        line.remove_class("open")
        line.can_focus = False
        self.query_one("#rows").focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.value.startswith("/"):
            self.filter(event.value[1:])
        elif not event.value and event.input.has_class("open"):
            self._close_line()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        text = event.value
        self._close_line()
        if text.startswith(":"):
            self.drtool.command(text[1:].strip())

    def panel_lines(self) -> list[str]:
        """What is on the screen as text, details included."""
        lines = [row.text for row in self.query_one("#rows", Rows).shown]
        if self.query_one("#detail").has_class("open"):
            lines += ["", *(row.text for row in self.query_one("#detail-rows", Rows).shown)]
        return [self.drtool.state_line(), self.drtool.facts_line(), self.NAME, *(plain(line) for line in lines)]

    def current(self) -> object:
        """What the row under the cursor stands for."""
        row = self.query_one("#rows", Rows).current
        return row.subject if row is not None else None

    def action_copy(self) -> None:
        row = self.query_one("#rows", Rows).current
        if row is not None:
            self.drtool.copy(row.text)

    def action_write(self) -> None:
        self.drtool.write_panel(self.NAME, self.panel_lines())

    def action_print(self) -> None:
        self.drtool.print_panel(self.panel_lines())

    def _keys(self) -> str:
        own = " ".join(f"{key}:{words}" for key, words in self.KEYS)
        return f"{own} enter:details /:filter ::command 1-9:screens ?:keys q:quit".strip()
