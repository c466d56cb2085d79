"""The real program in a real terminal: tmux at 80x24, TERM=linux, no colour; and a terminal left as it was found."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from drtool.commands.practice import STOPPED
from drtool.commands.rehearsal import Handover, rehearse
from drtool.commands.scenarios import Scenario, Stage
from tests.builders.tree import laid
from tests.eventually import eventually

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """A tmux server of its own, so that nobody's session is touched."""

    def __init__(self, directory: Path) -> None:
        self.socket = str(directory / "tmux")

    def tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", self.socket, *words], capture_output=True, text=True, timeout=30)
        return done.stdout

    def start(self, command: str) -> None:
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", command)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def keys(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    def until(self, words: str, seconds: float = 60) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if words in (screen := self.screen()):
                return screen
            time.sleep(0.1)
        raise AssertionError(f"never {words!r}:\n{self.screen()}")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    made.tmux("kill-server")


def kill_etcd(stage: Stage) -> None:
    etcd = stage.kubelet.pid
    (stage.kubelet.place / STOPPED).touch()
    os.kill(etcd, signal.SIGKILL)
    while stage.kubelet.pid:
        time.sleep(0.05)


def test_a_node_whose_etcd_was_killed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's node; nothing starts etcd again."""

    def hand_over(node: Handover) -> None:
        words = shlex.join([sys.executable, "-m", "drtool.cli", "tui"])
        with monkeypatch.context() as shell:
            for name, value in node.environment.items():
                shell.setenv(name, value)
            terminal.start(f"NO_COLOR=1 TERM=linux {words}")
        screen = terminal.until("etcd is not ready: ")
        assert "Connection refused" in screen
        assert all(len(line) <= 80 for line in screen.splitlines())
        terminal.keys("Enter")
        terminal.until("component-not-ready [critical] cause")
        terminal.keys("4")
        assert "sound" in terminal.until("revision")
        terminal.keys("6")
        terminal.until("good, never drilled")
        assert "\x1b" not in terminal.screen()

    rehearse(Scenario("etcd-killed", "etcd was killed", "", (), kill_etcd), hand_over)


def program(root: Path, *more: str) -> str:
    words = [sys.executable, "-m", "drtool.cli", "tui", "--root", str(root), "--at", "2026-12-15T00:00:00Z", *more]
    return "NO_COLOR=1 TERM=linux DRTOOL_STORE_URL=file:///nonexistent " + shlex.join(words)


def left_as(file: Path) -> str:
    """Shell words that keep what the terminal is set to: the file is there once it is whole."""
    return f"stty -a > {file}.part; mv {file}.part {file}; sleep 60"


def told(file: Path) -> str:
    return eventually(lambda: file.exists() and file.read_text(), f"{file} is written") or ""


def test_an_outage_at_80_by_24_without_colour(terminal: Terminal, tmp_path: Path) -> None:
    tree = laid(tmp_path / "node")
    tree.addresses("192.0.2.120")
    terminal.start(f"{program(tree.root)}; {left_as(tmp_path / 'after')}")
    screen = terminal.until("This node's address 192.0.2.111 is gone; it has 192.0.2.120")
    assert screen.splitlines()[0].startswith("cp-1: This node's address")
    assert all(len(line) <= 80 for line in screen.splitlines())
    terminal.keys("Enter")
    terminal.until("/proc/net/fib_trie:5: 192.0.2.120")
    terminal.keys("6")
    terminal.until("unknown since")
    terminal.keys("2")
    terminal.until("Checks (")
    assert "\x1b" not in terminal.screen()
    terminal.keys("q")
    assert " echo " in told(tmp_path / "after")


@pytest.mark.parametrize("name", ["TERM", "HUP"])
def test_the_terminal_is_restored_after_a_signal(terminal: Terminal, tmp_path: Path, name: str) -> None:
    tree = laid(tmp_path / "node")
    terminal.start(f"{program(tree.root)}; echo back again; {left_as(tmp_path / 'after')}")
    terminal.until("no cause of an outage found")
    found = subprocess.run(["pgrep", "-f", f"drtool.cli tui --root {tree.root}"], capture_output=True, text=True)
    pids = [int(pid) for pid in found.stdout.split() if "python" in Path(f"/proc/{pid}/comm").read_text()]
    assert pids
    os.kill(pids[-1], signal.Signals[f"SIG{name}"])
    screen = terminal.until("back again")
    assert "no cause of an outage found" not in screen
    assert " echo " in told(tmp_path / "after")
