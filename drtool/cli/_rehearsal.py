"""`drtool drill --scenario`: tells the story, hands over a shell or the terminal UI, and shows the verdict."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from drtool.cli._output import columns, emit, visible

if TYPE_CHECKING:
    from drtool.commands.rehearsal import Handover, Rehearsal

BAD = 4
ABOUT = (
    "Its etcd really runs, as its manifest says; there is no API server. Without --root drtool acts on this node, "
    "and on nothing else; etcdctl asks its etcd. Backups are in $DRTOOL_REHEARSAL_STORE, which drtool knows."
)
PROMPT = "[rehearsal {name}: scratch node, nothing here is real] $ "


def command(name: str, ui: bool, output: str) -> int:
    """`name` is a scenario, or `list`."""
    import msgspec

    from drtool.commands.rehearsal import rehearse
    from drtool.commands.scenarios import SCENARIOS, scenario

    if name == "list":
        data = [{"name": one.name, "title": one.title, "story": one.story} for one in SCENARIOS]
        rows = [(one.name, one.title) for one in SCENARIOS]
        emit({"schemaVersion": 1, "scenarios": data}, output, lambda: columns(("SCENARIO", "WHAT HAPPENED"), rows))
        return 0
    chosen = scenario(name)
    click.echo("laying a scratch node, booting etcd, taking a backup, breaking it ...", err=True)
    found = rehearse(chosen, lambda handed: _hand_over(handed, ui, output))
    emit(msgspec.to_builtins(found), output, lambda: as_text(found))
    return 0 if found.repaired else BAD


def _hand_over(handed: Handover, ui: bool, output: str) -> None:
    """The person's own shell on a terminal; without one, the commands come from standard input."""
    here = sys.stdin.isatty()
    click.echo(_told(handed, ui), err=True)
    words = [sys.executable, "-m", "drtool.cli", "tui"] if ui else shell(os.environ.get("SHELL", "sh"), here)
    environment = handed.environment | {"PS1": PROMPT.format(name=handed.scenario.name)}
    said = None if output == "table" else sys.stderr
    process = subprocess.Popen(words, env=environment, cwd=handed.root, stdout=said, start_new_session=not here)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if here else None
    try:
        process.wait()
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if here:
            process.terminate()
        else:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def shell(named: str, terminal: bool) -> list[str]:
    """Without the person's own start-up files, which would take the prompt away that says what this is."""
    if not terminal:
        return ["sh"]
    quiet = {"bash": ["--noprofile", "--norc"], "zsh": ["-f"]}
    return [named, *quiet.get(Path(named).name, []), "-i"]


def _told(handed: Handover, ui: bool) -> str:
    root, scenario = handed.root, handed.scenario
    lines = [
        "",
        f"REHEARSAL: {scenario.title}",
        "",
        click.wrap_text(scenario.story, 100),
        "",
        f"The node is {root} ($DRTOOL_REHEARSAL_ROOT).",
        click.wrap_text(ABOUT, 100),
        "",
        f"Put it right, then {'quit the UI' if ui else 'end this shell (exit)'}: the clock runs.",
        "",
    ]
    return "\n".join(lines)


def as_text(found: Rehearsal) -> str:
    verdict = "REPAIRED" if found.repaired else "NOT repaired"
    lines = [f"{found.scenario}: {verdict}, after {found.seconds:.0f} s"]
    for fact in found.facts:
        why = f": {visible(fact.why)}" if fact.why else ""
        lines.append(f"  {'yes' if fact.good else 'NO '}  {visible(fact.what)}{why}")
    if not found.repaired:
        lines += ["", "drtool's own way:", *(f"  {line}" for line in found.way)]
    return "\n".join(lines)
