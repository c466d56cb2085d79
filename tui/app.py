"""The terminal UI: screens over what commands return. Keyboard only, no animation, words and shapes before colour."""

from __future__ import annotations

import base64
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.suggester import SuggestFromList

from drtool.commands.scratch_marker import acts_on
from drtool.host.root import Root
from tui.glance import Glance, glance
from tui.questions import questions
from tui.running import Running
from tui.screens.listing import Listing
from tui.screens.output import Output
from tui.session import Known, Session
from tui.thin import ThinDriver
from tui.widgets.rows import fitted

if TYPE_CHECKING:
    from drtool.commands.check import Report
    from snapshots.inventory import Inventory

COPY_LIMIT = 8192
JUDGEMENTS = ("glance", "check", "probed")
BEHIND = ("probed", "backups", "check")
SCREENS = ("causes", "checks", "certificates", "etcd", "pods", "backups", "objects", "plans", "nodes")


def screen(name: str) -> Callable[[], Screen[Any]]:
    """The class of that name in tui/screens, imported when it is first shown: the first paint waits for one of them."""

    def made() -> Screen[Any]:
        found: Screen[Any] = getattr(import_module(f"tui.screens.{name}"), name.capitalize())()
        return found

    return made


class DrtoolApp(App[None]):
    """Questions are asked behind the screens; `glance` is the one that the first screen waits for."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "drtool"
    SCREENS: ClassVar[dict[str, Callable[[], Screen[Any]]]] = {name: screen(name) for name in (*SCREENS, "keys")}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
        Binding("question_mark", "show('keys')", "keys"),
        *(Binding(str(n), f"show('{name}')", name) for n, name in enumerate(SCREENS, 1)),
    ]

    def __init__(
        self,
        roots: Sequence[Root],
        at: datetime | None = None,
        source: str = "",
        asked: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        """`asked` stands in for questions by name."""
        super().__init__(driver_class=ThinDriver, ansi_color=True)
        self.animation_level = "none"
        self.completions = SuggestFromList([f":{name}" for name in (*SCREENS, "quit")])
        self.roots = roots
        self.at = at
        self.source = source
        self.session = Session({**questions(roots, at, source), **(asked or {})}, self._changed)

    @property
    def root(self) -> Root:
        return self.roots[0]

    def on_mount(self) -> None:
        self.push_screen("causes")
        self.call_later(self._paint_at_once)

    def _paint_at_once(self) -> None:
        """A change of size is painted when it comes, anything else with the next frame."""
        self.refresh_screen()
        self.post_message(Resize(self.size, self.size))

    def on_unmount(self) -> None:
        self.session.close()

    def _changed(self, question: str) -> None:
        """Called from a question's thread."""
        if not self.is_running:
            return
        if question == "glance":
            self.call_from_thread(self._paint_at_once)
            self.call_from_thread(self.call_after_refresh, self._ask_behind)
        else:
            self.call_from_thread(self.refresh_screen)

    def _ask_behind(self) -> None:
        """What takes longer waits until the first screen is painted."""
        for question in BEHIND:
            self.session.ask(question)

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
        if word in fitting:
            self.action_show(word)
        elif len(fitting) == 1:
            self.action_show(fitting[0])
        elif word:
            known = ", ".join((*SCREENS, "quit"))
            self.notify(f'no command "{fitted(word, 20).strip()}": {known}', markup=False, timeout=5)

    # ---- commands that run beside the screens

    def run_command(self, words: str) -> None:
        """A command that changes nothing on the node; its output gets a screen."""
        self.push_screen(Output(Running(words)))

    def here(self, words: str) -> str:
        """The command for this node's tree, wherever it lies."""
        directory = str(self.root.directory)
        return words if directory == "/" else f"{words} --root {shlex.quote(directory)}"

    def plan(self, words: str) -> None:
        """A command whose plan is shown first; carrying it out asks for the cluster's name."""
        if not acts_on(self.root):
            self.run_command(self.here(words))
            return
        self.push_screen(Output(Running(words), self.cluster(), f"{words} --apply --yes"))

    def agree_and_run(self, lines: Sequence[str], words: str, cluster: str) -> None:
        """For plans that are known already: `undo --list` shows them once more before the name is asked for."""
        if lines and acts_on(self.root):
            self.push_screen(Output(Running("undo --list"), cluster, f"{words} --yes"))

    def browse(self, source: str) -> None:
        self.source = source
        self.session.questions.update(questions(self.roots, self.at, source))
        self.session.ask("objects", again=True)
        self.action_show("objects")

    def ask_again(self, question: str) -> None:
        for one in JUDGEMENTS if question in JUDGEMENTS else (question,):
            if one == question or self.session.was_asked(one):
                self.session.ask(one, again=True)

    def changed_by_command(self) -> None:
        """A command may have changed the node or the store: what was known of them is asked again."""
        for question in ("glance", "plans", "backups", "etcd"):
            if self.session.was_asked(question):
                self.ask_again(question)

    def cluster(self) -> str:
        """What is typed to agree to a plan; "" while it is not known: then nothing can be agreed to."""
        seen = self.glance()
        return seen.cluster if seen is not None else ""

    # ---- the two lines on top of every screen

    def report(self) -> Report | None:
        """What was asked for last; with the probes' answers as soon as they are in."""
        newest: Known[Report] = _newer(self.session.known("check"), self.session.known("probed"))
        return newest.value

    def glance(self) -> Glance | None:
        """As `report`; the files alone where no more is known yet."""
        files: Known[Glance] = self.session.known("glance")
        probed: Known[Report] = self.session.learned("probed")
        if probed.value is not None and _newer(files, probed) is probed:
            return glance(probed.value)
        return files.value

    def state_line(self) -> str:
        """The outage in one line."""
        seen = self.glance()
        if seen is None:
            return f"{self.root.directory}: {self.session.known('glance').words()}"
        causes = seen.verdict.root_causes
        name = seen.name or str(self.root.directory)
        if not causes:
            return f"{name}: no cause of an outage found"
        more = f" (+{len(causes) - 1} more)" if len(causes) > 1 else ""
        return f"{name}: {seen.verdict.findings[0].finding.title}{more}"

    def facts_line(self) -> str:
        """Version, layout, the nearest expiry, the last verified backup; each says when it is not known."""
        seen = self.glance()
        return " | ".join((*seen.facts, self._backup_words())) if seen is not None else ""

    def _backup_words(self) -> str:
        known: Known[Inventory] = self.session.learned("backups")
        if known.value is None:
            return f"backup: {known.words()}"
        from snapshots.catalog import ahead  # no store is read before this

        now = self.session.clock()
        good = [one.record.taken_at for one in known.value.backups if one.good and not ahead(one, now)]
        if not good:
            return "backup: NONE verified"
        return f"backup: {(now - max(good)).total_seconds() / 3600:.0f} h old"

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


def _newer(files: Known[Any], probed: Known[Any]) -> Known[Any]:
    """By when it was asked for; what the probes add counts where both were asked for together."""
    if probed.value is None or probed.asked is None:
        return files
    return files if files.value is not None and files.asked is not None and files.asked > probed.asked else probed
