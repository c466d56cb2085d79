"""Journeys through the screens with the real commands behind them, and what a screen says when it does not know."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from drtool.commands.check import Report, check
from drtool.core.errors import NotFound
from drtool.host.root import Root
from tests.builders.tree import NOW, Tree, laid
from tui.app import DrtoolApp
from tui.glance import Glance, glance_at
from tui.questions import questions
from tui.screens.listing import Listing
from tui.widgets.rows import Rows

Journey = Callable[[DrtoolApp, Pilot[None]], "asyncio.Future[None] | asyncio.Task[None] | object"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("DRTOOL_CONFIG", str(tmp_path / "drtool.yaml"))
    (tmp_path / "store").mkdir()
    (tmp_path / "drtool.yaml").write_text(f"store: {{url: 'file://{tmp_path}/store'}}\n")
    return laid(tmp_path / "node")


async def until(pilot: Pilot[None], holds: Callable[[], bool], what: str) -> None:
    for _ in range(600):
        if holds():
            return
        await pilot.pause(0.05)
    raise AssertionError(f"never: {what}: {text(pilot.app)}")


def text(app: object) -> str:
    assert isinstance(app, DrtoolApp)
    screen = app.screen
    if isinstance(screen, Listing):
        return "\n".join(screen.panel_lines())
    return "\n".join(row.text for rows in screen.query(Rows) for row in rows.shown)


def play(tree: Tree, journey: Callable[[DrtoolApp, Pilot[None]], object], **more: object) -> None:
    async def run() -> None:
        app = DrtoolApp([Root(tree.root)], NOW, **more)  # type: ignore[arg-type]
        async with app.run_test(size=(80, 24)) as pilot:
            found = journey(app, pilot)
            assert asyncio.iscoroutine(found)
            await found

    asyncio.run(run())


def test_the_cause_comes_first_with_its_evidence_a_key_away(tree: Tree) -> None:
    tree.addresses("192.0.2.120")

    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "is gone; it has 192.0.2.120" in app.state_line(), "the state in one line")
        assert "1. [critical] This node's address 192.0.2.111 is gone" in text(app)
        assert "follows: etcd listens on 192.0.2.111" in text(app)
        await pilot.press("enter")
        assert "/proc/net/fib_trie:5: 192.0.2.120" in text(app)
        await pilot.press("escape", "slash", *"probe")
        assert all("probe" in row.text.lower() for row in app.screen.query_one("#rows", Rows).shown)
        await pilot.press("escape", "escape")
        assert app.screen.query_one("#rows", Rows).wanted in {"", "probe"}

    play(tree, journey)


def test_every_screen_opens_and_none_is_blank(tree: Tree) -> None:
    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        for key, words in {
            "1": "no cause of an outage found",
            "2": "cert-expired",
            "3": "API server",
            "4": "running server",
            "5": "kube-apiserver",
            "6": "the store holds no backup",
            "7": "unknown since",
            "8": "no plan was ever carried out",
            "9": "cp-1",
        }.items():
            await pilot.press(key)
            await until(pilot, lambda words=words: words in text(app), words)  # type: ignore[misc]
        await pilot.press("question_mark")
        assert "copy the row" in text(app)
        await pilot.press("escape")
        await pilot.press("colon", *"cer", "enter")
        assert isinstance(app.screen, Listing)
        assert app.screen.NAME == "Certificates"

    play(tree, journey)


def test_the_offending_line_is_marked_in_its_manifest(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "etcd-servers", "https://127.0.0.1:2389")

    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await pilot.press("5")
        await until(pilot, lambda: "kube-apiserver" in text(app), "the Pods")
        rows = app.screen.query_one("#rows", Rows)
        rows.filter("kube-apiserver")
        await pilot.press("enter")
        assert "<- etcd-servers-vs-etcd" in " ".join(text(app).split())

    play(tree, journey)


def test_what_is_not_known_says_since_when_and_why(tree: Tree) -> None:
    def refused() -> object:
        raise NotFound("the store is unplugged")

    asked = {**questions([Root(tree.root)], NOW, ""), "backups": refused}

    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await pilot.press("6")
        await until(pilot, lambda: "the store is unplugged" in text(app), "the reason")
        assert "unknown since " in text(app)

    play(tree, journey, asked=asked)


def test_a_plan_of_a_copied_tree_is_shown_and_not_carried_out(tree: Tree) -> None:
    tree.addresses("192.0.2.120")

    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: "is gone" in app.state_line(), "the cause")
        await pilot.press("f")
        await until(pilot, lambda: "192.0.2.111 -> 192.0.2.120" in text(app), "the plan")
        await pilot.press("A")
        assert not app.screen.query_one("#answer").has_class("open")
        assert "192.0.2.111" in tree.read("/etc/kubernetes/manifests/etcd.yaml")
        await pilot.press("escape")

    play(tree, journey)


def test_a_panel_is_written_to_a_file(tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)

    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await pilot.press("2")
        await until(pilot, lambda: "cert-expired" in text(app), "the checks")
        await pilot.press("w")
        await until(pilot, (tmp_path / "drtool-checks.txt").exists, "the file")
        assert "cert-expired" in (tmp_path / "drtool-checks.txt").read_text()

    play(tree, journey)


def test_copying_is_capped_osc_52(tree: Tree, capfd: pytest.CaptureFixture[str]) -> None:
    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        written: list[str] = []
        assert app._driver is not None
        app._driver.write = written.append  # type: ignore[method-assign]
        app.copy("x" * 100_000)
        copied = next(piece for piece in written if piece.startswith("\x1b]52;c;"))
        assert len(copied) < 12_000
        await pilot.pause()

    play(tree, journey)


def test_answers_arrive_behind_the_screen(tree: Tree) -> None:
    looked = threading.Event()

    def slow() -> Glance:
        looked.wait(60)
        return glance_at(Root(tree.root), NOW)

    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await pilot.pause()
        assert "asking ..." in text(app)
        looked.set()
        await until(pilot, lambda: "no cause of an outage found" in app.state_line(), "the answer")

    play(tree, journey, asked={"glance": slow})


def test_no_terminal_is_told_and_nothing_is_drawn() -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "drtool.cli", "tui"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "dumb"},
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "needs a terminal" in done.stderr


def test_a_filtered_list_says_that_it_is_not_all(tree: Tree) -> None:
    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        def title() -> str:
            return str(app.screen.query_one("#title", Static).content)

        await pilot.press("2")
        await until(pilot, lambda: "cert-expired" in text(app), "the checks")
        whole = title()
        await pilot.press("slash", *"cert-expired")
        assert title().startswith("Checks (1 of ")
        await pilot.press(*"nonsense")
        assert title().startswith("Checks (0 of ")
        await pilot.press("enter", "escape")
        assert title() == whole

    play(tree, journey)


def test_the_command_line_completes_with_tab(tree: Tree) -> None:
    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await pilot.press("colon", "c", "e")
        line = app.screen.query_one("#line", Input)
        await until(pilot, lambda: line._suggestion == ":certificates", "a suggestion")
        await pilot.press("tab", "enter")
        assert isinstance(app.screen, Listing)
        assert app.screen.NAME == "Certificates"

    play(tree, journey)


def test_the_probes_answers_stay_when_the_files_are_read_after_them(tree: Tree) -> None:
    """A dead endpoint answers at once; the files that were asked for together with it come later."""
    files, probed = (check(Root(tree.root), NOW, probe=False) for _ in range(2))
    answered = threading.Event()

    def read() -> Report:
        answered.wait(60)
        return files

    async def journey(app: DrtoolApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: app.report() is probed, "the probes' answers")
        answered.set()
        await until(pilot, lambda: app.session.known("check").value is files, "the files")
        assert app.report() is probed

    play(tree, journey, asked={"check": read, "probed": lambda: probed})
