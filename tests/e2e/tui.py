"""The terminal UI on a real kubelet node, in tmux at 80x24 with TERM=linux and NO_COLOR=1.

    python -m tests.e2e.tui

The node's address moves and its etcd dies; the cause is on the first screen. Its plan is carried out from the screen,
the terminal is lost in the middle of it, and the plan still ends; a second terminal finds it among the plans.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.lab import SCRIPT, causes, healthy, kubectl, lab, nodes, on, ready, told
from tests.tui.test_terminal import Terminal

OLD, NEW = "198.51.100.11", "198.51.100.21"


def main() -> None:
    with nodes(1), tempfile.TemporaryDirectory() as scratch:
        healthy(1)
        lab("address", 1, NEW)
        on(1, "systemctl", "restart", "kubelet")
        assert causes(1) == ["node-address-changed"]
        terminal = opened(Path(scratch) / "first")
        try:
            told("the cause on the first screen", lambda: terminal.until(f"address {OLD} is gone; it has {NEW}"))
            terminal.keys("f")
            told("the plan", lambda: terminal.until("A:carry it out"))
            terminal.keys("A")
            asked = terminal.until("type the cluster's name (")
            terminal.keys("not-this-one", "Enter")
            terminal.until("'not-this-one'")
            assert causes(1) == ["node-address-changed"]
            terminal.keys("A")
            name = asked.partition("type the cluster's name (")[2].partition(")")[0]
            terminal.keys(name, "Enter")
            terminal.until("--apply --yes: running")
        finally:
            terminal.tmux("kill-server")
        print("the terminal is lost while the plan runs", flush=True)
        told("the plan has ended", lambda: until(lambda: causes(1) == [], terminal, 180))
        ready(1, NEW)
        terminal = opened(Path(scratch) / "second")
        try:
            terminal.keys("8")
            until(lambda: " done " in terminal.screen(), terminal)
            print(terminal.screen())
            terminal.keys("1", "r")
            terminal.until("no cause of an outage found")
        finally:
            terminal.tmux("kill-server")
        healthy(1)
        assert "before" in kubectl(1, "get", "configmap", "witness", "-o", "yaml")


def opened(socket: Path) -> Terminal:
    socket.mkdir()
    terminal = Terminal(socket)
    words = [sys.executable, str(SCRIPT.resolve()), "exec", "1", "--", "env", "NO_COLOR=1", "TERM=linux",
             sys.executable, "-m", "drtool.cli", "tui"]  # fmt: skip
    terminal.start(shlex.join(words))
    return terminal


def until(holds: Callable[[], bool], terminal: Terminal, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(terminal.screen())
        time.sleep(0.5)


if __name__ == "__main__":
    main()
