"""A terminal driver for bad lines: a line that stands on the screen already is not sent again, nor are trailing blanks.

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
BLANKS = re.compile(r"(?:\x1b\[(?:39;49|0)?m)?( {4,})((?:\x1b\[0?m)?)$")
PLAIN = re.compile(r"\x1b\[39;49m([^\x1b]*)\x1b\[0m")
WIPES = ("\x1b[?1049", "\x1b[2J", "\x1b[J")
ERASE = "\x1b[K"
UNSEEN_ON_BLANKS = frozenset({"", "0", "1", "2", "39", "49"})
"""Reset, bold, dim, and the default colours."""


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
    """Blanks at the end become one "erase to the end", where no style shows on them; default colours go unsaid.

    Every line ends with its style reset, so that the next one begins without any.
    """
    bare = PLAIN.fullmatch(line)
    if bare is not None:
        text = bare[1].rstrip(" ")
        return text + ERASE if len(bare[1]) - len(text) > len(ERASE) else bare[1]
    found = BLANKS.search(line)
    if found is None:
        return line
    styles = STYLE.findall(line[: found.start(1)])
    if styles and not UNSEEN_ON_BLANKS.issuperset(styles[-1].split(";")):
        return line
    return f"{line[: found.start(1)]}\x1b[0m{ERASE}"


class ThinDriver(LinuxDriver):
    def write(self, data: str) -> None:
        if not hasattr(self, "_lines"):
            self._lines = Lines()
        width = self._app.size.width
        super().write(self._lines.thinned(data, width) if width else data)
