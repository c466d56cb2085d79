"""The terminal UI over a slow line: time to the first paint, and bytes that a key press costs at 80x24.

    python bench/tui.py [TREE]

Against what a person would otherwise look at: `less` on the text of `drtool check`, key for key, in the same terminal.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

ROUNDS = 5
QUIET = 0.35
KEYS = {"j": b"j", "k": b"k", "Enter": b"\r", "space": b" "} | {f"{n} (screen)": b"%d" % n for n in (*range(2, 10), 1)}


class Session:
    """A program on a pseudo terminal of 80x24."""

    def __init__(self, command: list[str]) -> None:
        self.began = time.monotonic()
        self.seen = b""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="linux", NO_COLOR="1", LINES="24", COLUMNS="80")
            os.environ["DRTOOL_STORE_URL"] = "file:///nonexistent"
            os.execvp(command[0], command)  # noqa: S606 - the program under test
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def until(self, words: bytes, seconds: float = 60) -> float:
        while words not in self.seen:
            if not select.select([self.terminal], [], [], seconds)[0]:
                raise SystemExit(f"never {words!r}")
            self.seen += os.read(self.terminal, 65536)
        return time.monotonic() - self.began

    def drained(self) -> int:
        count = 0
        while select.select([self.terminal], [], [], QUIET)[0]:
            try:
                count += len(os.read(self.terminal, 65536))
            except OSError:
                break
        return count

    def press(self, key: bytes) -> int:
        os.write(self.terminal, key)
        return self.drained()

    def end(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        self.drained()
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def main() -> None:
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    with tempfile.TemporaryDirectory(prefix="drtool-bench-") as tree:
        make(Path(tree))
        measure(tree)


def measure(tree: str) -> None:
    program = [sys.executable, "-m", "drtool.cli", "tui", "--root", tree, "--at", "2026-12-15T00:00:00Z"]
    bare = [time_of([sys.executable, "-c", "pass"]) for _ in range(ROUNDS)]
    paints: list[float] = []
    told: list[float] = []
    costs: dict[str, list[int]] = {name: [] for name in KEYS}
    for _ in range(ROUNDS):
        session = Session(program)
        paints.append(session.until(b"Causes"))
        told.append(session.until(b"expiry in"))
        session.drained()
        for name, key in KEYS.items():
            costs[name].append(session.press(key))
        session.end()
    ratio = statistics.median(paints) / statistics.median(bare)
    print(f"first paint   {statistics.median(paints):.2f} s  ({ratio:.0f}x python -c pass)")
    print(f"state told    {statistics.median(told):.2f} s")
    for name, found in costs.items():
        print(f"key {name:11} {statistics.median(found):6.0f} bytes")
    print(f"dearest       {max(max(found) for found in costs.values()):6.0f} bytes")
    print(f"less, a line  {less(tree):6.0f} bytes")


def make(tree: Path) -> None:
    from datetime import UTC, datetime

    from manifests.kubeadm import Design, kernel_addresses, lay

    lay(tree, Design(), datetime(2026, 11, 30, tzinfo=UTC))
    for path, text in kernel_addresses("192.0.2.120").items():
        (tree / path.lstrip("/")).write_text(text)


def time_of(command: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - began


def less(tree: str) -> float:
    text = subprocess.run(
        [sys.executable, "-m", "drtool.cli", "explain"], capture_output=True, text=True, check=False
    ).stdout
    with tempfile.NamedTemporaryFile("w", suffix=tree.replace("/", "_")[-20:]) as file:
        file.write(text)
        file.flush()
        session = Session(["less", file.name])
        session.drained()
        cost = session.press(b"j")
        session.end()
    return cost


if __name__ == "__main__":
    main()
