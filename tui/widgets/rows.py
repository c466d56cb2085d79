"""A list of text lines with a cursor, drawn line by line: 100,000 rows cost what the visible ones cost.

Text is data: no markup, control characters shown, long lines cut. A move repaints two lines, which over a bad line is
what makes it usable.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

MAX_TEXT = 2000
CURSOR = "> "


@dataclass(frozen=True, slots=True)
class Row:
    """One line. `style` is "", "bold" or "dim"; `subject` is what the row stands for, handed back when it is chosen."""

    text: str
    style: str = ""
    subject: Any = None


class Rows(Widget, can_focus=True):
    """`pointer` False makes a panel to read: moving scrolls it."""

    DEFAULT_CSS = "Rows { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "down", show=False),
        Binding("k,up", "move(-1)", "up", show=False),
        Binding("space,pagedown,ctrl+f", "page(1)", "page down", show=False),
        Binding("b,pageup,ctrl+b", "page(-1)", "page up", show=False),
        Binding("g,home", "jump(0)", "first", show=False),
        Binding("G,end", "jump(-1)", "last", show=False),
        Binding("enter", "choose", "details", show=False),
    ]

    class Moved(Message):
        def __init__(self, rows: Rows, row: Row | None) -> None:
            super().__init__()
            self.rows = rows
            self.row = row

    class Chosen(Moved):
        pass

    def __init__(self, pointer: bool = True, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.pointer = pointer
        self.rows: Sequence[Row] = ()
        self.wanted = ""
        self._shown: Sequence[Row] = ()
        self.cursor = 0
        self.top = 0
        self._placed = False

    def show(self, rows: Sequence[Row]) -> None:
        """New rows; a cursor that somebody put on a subject stays on it, any other stays where it is on the screen.

        What comes first is what matters most: a cause found later must not come to lie above the cursor unseen.
        """
        kept = self.current if self._placed else None
        self.rows = rows
        self._filter(kept.subject if kept else None)

    def filter(self, wanted: str) -> None:
        kept = self.current
        self.wanted = wanted.lower()
        self._filter(kept.subject if kept else None)

    def _filter(self, subject: object) -> None:
        self._shown = [row for row in self.rows if self.wanted in row.text.lower()] if self.wanted else self.rows
        places = (i for i, row in enumerate(self._shown) if subject is not None and row.subject == subject)
        self.cursor = next(places, min(self.cursor, max(0, len(self._shown) - 1)))
        self._keep_in_view()
        self.refresh()
        self.post_message(self.Moved(self, self.current))

    @property
    def current(self) -> Row | None:
        return self._shown[self.cursor] if 0 <= self.cursor < len(self._shown) else None

    @property
    def shown(self) -> Sequence[Row]:
        return self._shown

    def action_move(self, by: int) -> None:
        self._go(self.cursor + by if self.pointer else self.top + by)

    def action_page(self, by: int) -> None:
        step = max(1, self.size.height - 1)
        self._go((self.cursor if self.pointer else self.top) + by * step)

    def action_jump(self, to: int) -> None:
        self._go(to if to >= 0 else len(self._shown) - 1)

    def action_choose(self) -> None:
        self._placed = True
        self.post_message(self.Chosen(self, self.current))

    def _go(self, to: int) -> None:
        before, top = self.cursor, self.top
        self._placed = True
        if self.pointer:
            self.cursor = max(0, min(to, len(self._shown) - 1))
            self._keep_in_view()
        else:
            self.top = max(0, min(to, len(self._shown) - self.size.height))
        if self.top != top:
            self.refresh()
        elif before != self.cursor:
            for line in (before - top, self.cursor - top):
                self.refresh(Region(0, line, self.size.width, 1))
        if before != self.cursor:
            self.post_message(self.Moved(self, self.current))

    def _keep_in_view(self) -> None:
        height = max(1, self.size.height)
        self.top = max(0, min(max(self.top, self.cursor - height + 1), self.cursor, max(0, len(self._shown) - 1)))

    def on_resize(self) -> None:
        self._keep_in_view()

    def render_line(self, y: int) -> Strip:
        index = self.top + y
        if y == 0 and not self._shown and self.wanted:
            return Strip([Segment(fitted(f"nothing matches /{plain(self.wanted)}: Esc shows all", self.size.width))])
        if index >= len(self._shown):
            return Strip.blank(self.size.width)
        row = self._shown[index]
        here = self.pointer and index == self.cursor
        style = Style.parse(row.style) if row.style else Style.null()
        if here:
            style += Style(reverse=True)
        lead = (CURSOR if here else "  ") if self.pointer else ""
        return Strip([Segment(fitted(lead + plain(row.text), self.size.width), style)], self.size.width)


def plain(text: str) -> str:
    """Data as a terminal may safely show it: control characters and the like are written out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:MAX_TEXT])


def wrapped(text: str, width: int) -> list[str]:
    """A line of data over as many lines as it needs; continuations are indented. Capped like every text."""
    shown = plain(text)
    if len(shown) <= width or width < 20:
        return [shown]
    return textwrap.wrap(shown, width, subsequent_indent="    ", break_on_hyphens=False) or [""]


def fitted(text: str, width: int) -> str:
    """Exactly `width` cells; `…` where something was cut."""
    if cell_len(text) > width > 0:
        return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width)
    return set_cell_size(text, width)
