"""How every plan is printed, agreed to, and told while it is carried out."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from drtool.cli._output import emit, output_option, visible
from drtool.commands import carrying
from drtool.core.errors import UsageError
from drtool.core.plan import Event, Mark, Phase, Plan
from drtool.host.machine import Host
from drtool.host.root import Root

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def plan_options(command: Decorated) -> Decorated:
    """--apply, --yes, --dry-run, --progress, --root and -o, as every command with a plan has them."""
    for option in (
        click.option("--apply", is_flag=True, help="Carry the plan out, after the cluster's name is typed."),
        click.option("--yes", is_flag=True, help="With --apply: do not ask."),
        click.option("--dry-run", is_flag=True, help="Only print the plan (what happens without --apply)."),
        click.option("--progress", is_flag=True, help="A line for each step, also where stderr is no terminal."),
        click.option(
            "--root",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            default=Path("/"),
            help="A copied tree, to print the plan for; nothing is carried out there.",
        ),
        output_option,
    ):
        command = option(command)
    return command


def present(
    root: Path, plan: Plan[Host], output: str, *, apply: bool, yes: bool, dry_run: bool, progress: bool, again: str
) -> None:
    """Print the plan, and carry it out where that was asked for and agreed to. `again` is the command to apply it."""
    apply = apply and not dry_run
    if apply and root != Path("/"):
        raise UsageError(f"--apply acts on this machine, not on {root}", "run it on the node itself")
    if apply and not plan.steps:
        raise UsageError("the plan has no steps: there is nothing to carry out")
    if not apply:
        emit(as_data(plan, "planned"), output, lambda: as_text(plan, again))
        return
    if output == "table":
        click.echo(as_text(plan, ""))
    if not yes:
        agree(plan)
    with telling(plan, progress) as tell:
        carrying.start(Root(root), plan, tell)
    emit(
        as_data(plan, str(Phase.DONE)), output, lambda: f"done: {plan.title}\n\n  drtool undo {plan.id}   takes it back"
    )


def agree(plan: Plan[Host]) -> None:
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to agree to the plan", "add --yes")
    typed = click.prompt(
        f"type the cluster's name ({plan.cluster}) to carry it out", err=True, default="", show_default=False
    )
    if typed != plan.cluster:
        raise UsageError(f"{typed!r} is not {plan.cluster!r}: nothing was done")


@contextmanager
def telling(plan: Plan[Host], progress: bool) -> Iterator[Callable[[Mark], None]]:
    """Steps as they go, on stderr. A terminal that goes away does not stop the plan: it goes on, or can be resumed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lines = progress or sys.stderr.isatty()
    begun = time.monotonic()

    def tell(mark: Mark) -> None:
        nonlocal begun
        if mark.event in (Event.BEGUN, Event.UNDOING):
            begun = time.monotonic()
        if not lines:
            return
        try:
            click.echo(_line(plan, mark, time.monotonic() - begun), err=True, nl=mark.event is not Event.BEGUN)
        except OSError:
            return

    try:
        yield tell
    except (KeyboardInterrupt, SystemExit):
        click.echo(f"\ndrtool: the plan {plan.id} is unfinished", err=True)
        click.echo(f"  drtool resume {plan.id} goes on with it, drtool undo {plan.id} takes it back", err=True)
        raise
    finally:
        signal.signal(signal.SIGHUP, before)


def _line(plan: Plan[Host], mark: Mark, seconds: float) -> str:
    number = f"[{mark.step + 1}/{len(plan.steps)}]"
    match mark.event:
        case Event.BEGUN:
            return f"{number} {visible(plan.steps[mark.step].describe())} ... "
        case Event.DONE:
            return f"{seconds:.1f} s"
        case Event.FAILED:
            return f"failed: {visible(mark.reason)}"
        case Event.UNDOING:
            return f"{number} taking back: {visible(plan.steps[mark.step].describe())}"
        case Event.UNDONE:
            return f"{number} taken back in {seconds:.1f} s"
        case Event.FINISHED:
            return "every step is done"


def as_text(plan: Plan[Host], again: str) -> str:
    lines = [f"{visible(plan.title)}  (cluster {visible(plan.cluster)})", ""]
    lines += [f"  {visible(line)}" for line in plan.lines()]
    if plan.by_hand:
        lines += ["", "by hand, since drtool cannot:"]
        lines += [f"  - {visible(line)}" for line in plan.by_hand]
    if again:
        lines += ["", f"nothing was changed; to carry it out: {again}"]
    return "\n".join(lines)


def as_data(plan: Plan[Host], phase: str) -> dict[str, Any]:
    steps = [
        {"number": number, "step": type(step).__name__, "text": step.describe()}
        for number, step in enumerate(plan.steps, 1)
    ]
    return {
        "schemaVersion": 1,
        "plan": {
            "id": plan.id,
            "title": plan.title,
            "cluster": plan.cluster,
            "steps": steps,
            "byHand": [*plan.by_hand],
        },
        "phase": phase,
    }
