"""A terminal driver for bad lines: a line that stands on the screen already is not sent again, blanks hardly at all.

Textual paints a layout change as the whole screen, line by line, each with its position. At 80x24 that is several
kilobytes for one key; of these most are on the screen already.
"""

from __future__ import annotations

import re

from rich.cells import cell_len
from textual.drivers.linux_driver import LinuxDriver

PLACE = re.compile(r"\x1b\[(\d+);(\d+)H")
STYLE = re.compile(r"\x1b\[([\d;]*)m")
ESCAPE = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
BLANKS = re.compile(r" {6,}")
JUMPS_AT_END = re.compile(r"(?:\x1b\[\d+C)+((?:\x1b\[0m)?)$")
WIPES = ("\x1b[?1049", "\x1b[2J", "\x1b[J")
ERASE, RESET = "\x1b[K", "\x1b[0m"
DEFAULTS = frozenset({"", "0", "39", "49"})
UNSEEN_ON_BLANKS = frozenset({"", "1", "2"})
"""Bold and dim."""


class Lines:
    """What each line of the screen holds, as it was sent."""

    def __init__(self) -> None:
        self._sent: dict[int, str] = {}

    def thinned(self, data: str, width: int) -> str:
        """`data` without the whole lines that stand there already; parts of lines pass as they are."""
        if any(wipe in data for wipe in WIPES):
            self._sent.clear()
            return data
        pieces = PLACE.split(data)
        kept = [pieces[0]]
        for row, column, content in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            kept.append(self._piece(int(row), int(column), content, width))
        return "".join(kept)

    def _piece(self, row: int, column: int, content: str, width: int) -> str:
        place = f"\x1b[{row};{column}H"
        line = content.rstrip("\r\n")
        if column != 1 or cell_len(ESCAPE.sub("", line)) != width or "\n" in line:
            if ESCAPE.sub("", line):
                self._sent.pop(row, None)
            return place + content
        if self._sent.get(row) == line:
            return ""
        self._sent[row] = line
        return place + trimmed(line)


def trimmed(line: str) -> str:
    """The same line in fewer bytes: what is blank is erased first and jumped over, and default colours go unsaid.

    Every line begins without a style and ends without one.
    """
    parts = STYLE.split(line)
    if any("\x1b" in text for text in parts[::2]):
        return line
    shown, style = "", ""
    for wanted, text in zip(["", *(_said(found) for found in parts[1::2])], parts[::2], strict=True):
        words = BLANKS.sub(_jump, text) if UNSEEN_ON_BLANKS.issuperset(wanted.split(";")) else text
        if words and wanted != style:
            shown += (RESET if style else "") + (f"\x1b[{wanted}m" if wanted else "")
            style = wanted
        shown += words
    shown = ERASE + JUMPS_AT_END.sub(r"\1", shown + (RESET if style else ""))
    return min(shown, line, key=len)


def _said(style: str) -> str:
    """Numbers after 38 and 48 name a colour of a palette."""
    parts = style.split(";")
    return style if {"38", "48"} & set(parts) else ";".join(part for part in parts if part not in DEFAULTS)


def _jump(blanks: re.Match[str]) -> str:
    return f"\x1b[{len(blanks[0])}C"


class ThinDriver(LinuxDriver):
    def write(self, data: str) -> None:
        if not hasattr(self, "_lines"):
            self._lines = Lines()
        width = self._app.size.width
        super().write(self._lines.thinned(data, width) if width else data)
