"""The terminal UI: screens over what commands return. Keyboard only, no animation, words and shapes before colour."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from drtool.commands.check import Report
from drtool.host.root import Root
from tui.screens.causes import Causes
from tui.screens.checks import Checks
from tui.screens.keys import Keys
from tui.screens.listing import Listing
from tui.session import Session
from tui.widgets.rows import fitted

COPY_LIMIT = 8192
SCREENS: dict[str, type[Listing]] = {"causes": Causes, "checks": Checks}


class DrtoolApp(App[None]):
    """`questions` are asked behind the screens; `check` is the one that the first screen waits for."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "drtool"
    SCREENS: ClassVar[dict[str, Callable[[], Screen[Any]]]] = {**SCREENS, "keys": Keys}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
        Binding("question_mark", "show('keys')", "keys"),
        *(Binding(str(n), f"show('{name}')", name) for n, name in enumerate(SCREENS, 1)),
    ]

    def __init__(self, root: Root, questions: Mapping[str, Callable[[], Any]], at: datetime | None = None) -> None:
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self.root = root
        self.at = at
        self.session = Session(dict(questions), self._changed)

    def on_mount(self) -> None:
        self.push_screen("causes")

    def _changed(self, _: str) -> None:
        """Called from a question's thread."""
        if self.is_running:
            self.call_from_thread(self.refresh_screen)

    def refresh_screen(self) -> None:
        if isinstance(self.screen, Listing) and self.screen.is_mounted:
            self.screen.update()

    def action_show(self, name: str) -> None:
        if name == "keys":
            self.push_screen("keys")
        elif name in SCREENS:
            self.switch_screen(name)

    def command(self, text: str) -> None:
        """A word of the command line: a screen's name, or its beginning where only one fits."""
        word = text.split()[0] if text.split() else ""
        if word in {"q", "quit"}:
            self.exit()
            return
        fitting = [name for name in SCREENS if name.startswith(word)] if word else []
        if len(fitting) == 1:
            self.action_show(fitting[0])
        elif word:
            known = ", ".join((*SCREENS, "quit"))
            self.notify(f'no command "{fitted(word, 20).strip()}": {known}', markup=False, timeout=5)

    # ---- the two lines on top of every screen

    def state_line(self) -> str:
        """The outage in one line."""
        known = self.session.known("check")
        report = known.value
        if not isinstance(report, Report):
            return f"{self.root.directory}: {known.words()}"
        causes = report.verdict.root_causes
        name = report.node.name or str(self.root.directory)
        if not causes:
            return f"{name}: no cause of an outage found"
        more = f" (+{len(causes) - 1} more)" if len(causes) > 1 else ""
        return f"{name}: {report.verdict.findings[0].finding.title}{more}"

    def facts_line(self) -> str:
        """Layout, version, when it was judged."""
        report = self.session.known("check").value
        if not isinstance(report, Report):
            return ""
        version = report.node.kubernetes
        words = ["v" + ".".join(map(str, version)) if version else "version unknown", str(report.node.layout)]
        return "  ".join([*words, f"judged at {report.node.at:%Y-%m-%d %H:%M} UTC"])

    # ---- what leaves the screen

    def copy(self, text: str) -> None:
        """OSC 52: the terminal at the other end of SSH puts it on its clipboard."""
        data = base64.b64encode(text.encode()[:COPY_LIMIT]).decode()
        if self._driver is not None:
            self._driver.write(f"\x1b]52;c;{data}\a")
        self.notify("copied", timeout=2)

    def write_panel(self, name: str, lines: Sequence[str]) -> None:
        path = Path.cwd() / f"drtool-{name.lower().replace(' ', '-')}.txt"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write("\n".join(lines) + "\n")
        except OSError as error:
            self.notify(f"{path}: {error.strerror}", markup=False, severity="error", timeout=5)
            return
        self.notify(f"written to {path}", markup=False, timeout=5)

    def print_panel(self, lines: Sequence[str]) -> None:
        """Leaves the alternate screen, prints, waits for Enter: what was printed stays in the terminal's history."""
        with self.suspend():
            sys.stdout.write("\n".join(lines) + "\n\n[Enter goes back] ")
            sys.stdout.flush()
            sys.stdin.readline()
        self.refresh()
