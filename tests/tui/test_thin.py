"""What is not sent to a bad line: lines that stand there already, and trailing blanks. What is seen stays the same."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tui.thin import Lines, trimmed

WIDTH, HEIGHT = 24, 4
STYLES = st.sampled_from(["39;49", "1;39;49", "2", "7;39;49", "4", "38;5;39", "48;5;0", "0"])
WORDS = st.sampled_from(["a", "bc", " ", " " * 5, " " * 9])
SPANS = st.lists(st.tuples(STYLES, WORDS), min_size=1, max_size=6)


def line(row: int, spans: list[tuple[str, str]]) -> str:
    """As Textual sends it: each span with its style and a reset, the last one filling the line."""
    drawn, left = "", WIDTH
    for style, words in [*spans, ("39;49", " " * WIDTH)]:
        kept, left = words[:left], left - len(words[:left])
        drawn += f"\x1b[{style}m{kept}\x1b[0m" if kept else ""
    return f"\x1b[{row};1H{drawn}\n"


LINE = st.builds(line, st.integers(1, HEIGHT), SPANS)
PART = st.tuples(st.integers(1, HEIGHT), st.integers(2, 8), st.sampled_from(["", "xyz"])).map(
    lambda v: f"\x1b[{v[0]};{v[1]}H{v[2]}"
)


Cell = tuple[str, tuple[str, ...]]


def screen(data: str) -> list[list[Cell]]:
    """A terminal that knows positions, text, erasing, jumps and styles; of a blank, only what is seen of its style."""
    lines: list[list[Cell]] = [[(" ", ())] * WIDTH for _ in range(HEIGHT)]
    row = column = 0
    style = ""
    for match in re.finditer(r"\x1b\[(\d+);(\d+)H|(\x1b\[K)|\x1b\[(\d+)C|\x1b\[([\d;]*)m|([^\x1b])", data):
        if match[1]:
            row, column = int(match[1]) - 1, int(match[2]) - 1
        elif match[3]:
            assert style == ""
            lines[row][column:] = [(" ", ())] * (WIDTH - column)
        elif match[4]:
            column += int(match[4])
        elif match[5] is not None:
            style = "" if match[5] in {"", "0"} else match[5]
        elif match[6] not in "\r\n" and column < WIDTH:
            lines[row][column] = (match[6], seen(match[6], style))
            column += 1
    assert style == ""
    return lines


def seen(character: str, style: str) -> tuple[str, ...]:
    if "38" in style or "48" in style:
        return (style,) if "48" in style or character != " " else ()
    hidden = {"", "0", "39", "49"} | ({"1", "2"} if character == " " else set())
    return tuple(part for part in style.split(";") if part not in hidden)


@given(st.lists(st.lists(st.one_of(LINE, PART), max_size=6).map("".join), max_size=8))
def test_the_screen_is_the_same_as_without_it(chunks: list[str]) -> None:
    lines = Lines()
    sent = "".join(lines.thinned(chunk, WIDTH) for chunk in chunks)
    assert screen(sent) == screen("".join(chunks))


def test_a_line_that_stands_there_is_not_sent_again() -> None:
    lines = Lines()
    chunk = line(1, [("39;49", "abcdefghijkl")])
    assert "abc" in lines.thinned(chunk, WIDTH)
    assert lines.thinned(chunk, WIDTH) == ""
    lines.thinned("\x1b[2J", WIDTH)
    assert "abc" in lines.thinned(chunk, WIDTH)


def test_blanks_are_jumped_over_where_no_style_shows_on_them() -> None:
    for style in ("4", "1;7", "41", "38;5;3;48;5;4"):
        assert trimmed(f"\x1b[{style}mab          c\x1b[0m").count(" ") == 10
    assert trimmed("\x1b[1;39;49mab          c        \x1b[0m") == "\x1b[K\x1b[1mab\x1b[10Cc\x1b[0m"
    assert trimmed("\x1b[39;49mab          \x1b[0m") == "\x1b[Kab"
    assert trimmed("\x1b[39;49mab\x1b[0m\x1b[7;39;49m     \x1b[0m") == "\x1b[Kab\x1b[7m     \x1b[0m"


def test_what_is_not_understood_is_sent_as_it_is() -> None:
    strange = "\x1b[39;49mab\x1b]8;;x\x1b\\cd          \x1b[0m"
    assert trimmed(strange) == strange
