"""The list: data is data, a move repaints little, and 100,000 rows scroll."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult

from tui.widgets.rows import Row, Rows, fitted, plain, wrapped


class Alone(App[None]):
    def compose(self) -> ComposeResult:
        yield Rows(id="rows")


@given(st.text(), st.integers(1, 200))
def test_any_text_fits_and_is_harmless(text: str, width: int) -> None:
    shown = fitted(plain(text), width)
    assert cell_len(shown) == width
    assert shown.isprintable()


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=400), st.integers(20, 120))
def test_wrapped_lines_fit(text: str, width: int) -> None:
    assert all(len(line) <= width for line in wrapped(text, width))


def test_control_characters_are_written_out() -> None:
    assert plain("a\x1b[31mred\tb\x00") == "a\\x1b[31mred\\tb\\x00"


def test_a_hundred_thousand_rows() -> None:
    async def run() -> None:
        app = Alone()
        async with app.run_test(size=(80, 24)) as pilot:
            rows = app.query_one("#rows", Rows)
            rows.show([Row(f"key {number} [bold]not markup[/bold]", "", number) for number in range(100_000)])
            rows.focus()
            await pilot.press("G")
            assert rows.cursor == 99_999
            assert "99999 [bold]not markup[/bold]" in rows.render_line(23).text
            await pilot.press("g", "j", "j", "space")
            assert rows.cursor == 2 + 23
            rows.filter("key 4242 ")
            assert [row.subject for row in rows.shown] == [4242]
            rows.filter("")
            assert rows.current is not None
            assert rows.current.subject == 4242

    asyncio.run(run())


def test_new_rows_keep_the_cursor_on_its_subject_once_it_was_put_there() -> None:
    async def run() -> None:
        app = Alone()
        async with app.run_test(size=(80, 24)):
            rows = app.query_one("#rows", Rows)
            rows.show([Row("b", "", "b")])
            rows.show([Row("a", "", "a"), Row("b", "", "b")])
            assert rows.current is not None
            assert rows.current.subject == "a"
            rows.action_move(1)
            rows.show([Row("new", "", "new"), Row("a", "", "a"), Row("b", "", "b")])
            assert rows.current is not None
            assert rows.current.subject == "b"
            rows.show([])
            assert rows.current is None

    asyncio.run(run())
