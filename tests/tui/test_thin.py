"""What is not sent to a bad line: lines that stand there already, and trailing blanks. What is seen stays the same."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tui.thin import ESCAPE, Lines, trimmed

WIDTH, HEIGHT = 12, 4
TEXT = st.text(alphabet="ab ", min_size=WIDTH, max_size=WIDTH)
STYLES = st.sampled_from(["\x1b[39;49m", "\x1b[1;39;49m", "\x1b[7;39;49m", ""])
LINE = st.tuples(st.integers(1, HEIGHT), STYLES, TEXT).map(lambda v: f"\x1b[{v[0]};1H{v[1]}{v[2]}\x1b[0m\n")
PART = st.tuples(st.integers(1, HEIGHT), st.integers(2, 8), st.sampled_from(["", "xyz"])).map(
    lambda v: f"\x1b[{v[0]};{v[1]}H{v[2]}"
)


def screen(data: str) -> list[str]:
    """A terminal that knows positions, text, erasing and nothing else."""
    lines = [[" "] * WIDTH for _ in range(HEIGHT)]
    row = column = 0
    for match in re.finditer(r"\x1b\[(\d+);(\d+)H|(\x1b\[K)|\x1b\[[\d;]*m|([^\x1b])", data):
        if match[1]:
            row, column = int(match[1]) - 1, int(match[2]) - 1
        elif match[3]:
            lines[row][column:] = [" "] * (WIDTH - column)
        elif match[4] and match[4] not in "\r\n" and column < WIDTH:
            lines[row][column] = match[4]
            column += 1
    return ["".join(line) for line in lines]


@given(st.lists(st.lists(st.one_of(LINE, PART), max_size=6).map("".join), max_size=8))
def test_the_screen_is_the_same_as_without_it(chunks: list[str]) -> None:
    lines = Lines()
    sent = "".join(lines.thinned(chunk, WIDTH) for chunk in chunks)
    assert screen(sent) == screen("".join(chunks))


def test_a_line_that_stands_there_is_not_sent_again() -> None:
    lines = Lines()
    chunk = "\x1b[1;1H\x1b[39;49mabcdefghijkl\x1b[0m\n"
    assert "abc" in lines.thinned(chunk, WIDTH)
    assert lines.thinned(chunk, WIDTH) == ""
    lines.thinned("\x1b[2J", WIDTH)
    assert "abc" in lines.thinned(chunk, WIDTH)


def test_blanks_with_a_visible_style_are_kept() -> None:
    reverse = "\x1b[7;39;49mab          \x1b[0m"
    assert trimmed(reverse) == reverse
    for style in ("4", "1;7", "41", "38;5;3;48;5;4"):
        assert trimmed(f"\x1b[{style}mab          \x1b[0m") == f"\x1b[{style}mab          \x1b[0m"
    for style in ("39;49", "1;39;49", "2", ""):
        assert ESCAPE.sub("", trimmed(f"\x1b[{style}mab          \x1b[0m")) == "ab"
