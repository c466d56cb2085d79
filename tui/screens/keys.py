"""The keys of every screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from tui.widgets.rows import Row, Rows

KEYS = """\
1 2 ...     the screens by number
:name       a screen by name; :quit
j k         down, up (also the arrows)
space b     a page down, up
g G         first, last
Enter       details of this row; again closes them
Tab         between list and details
/text       only rows with this text; Esc shows all again
r           ask again
y           copy the row (OSC 52)
w           write this panel to a file in the current directory
p           print this panel on the normal screen
Esc         close, go back
q           quit"""


class Keys(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "dismiss_keys", "back")]

    def compose(self) -> ComposeResult:
        yield Static("Keys", markup=False)
        yield Rows(pointer=False, id="keys-rows")

    def on_mount(self) -> None:
        rows = self.query_one("#keys-rows", Rows)
        rows.show([Row(line) for line in KEYS.splitlines()])
        rows.focus()

    def action_dismiss_keys(self) -> None:
        self.app.pop_screen()
