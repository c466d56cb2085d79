"""How every plan is printed, agreed to, and told while it is carried out."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from drtool.cli._output import emit, nobody_reads, output_option, visible
from drtool.commands import carrying, scratch_marker
from drtool.core.errors import UsageError
from drtool.core.plan import Event, Mark, Phase, Plan
from drtool.host.machine import Host
from drtool.host.root import Root

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


SLOW = 0.5


def plan_options(command: Decorated) -> Decorated:
    """--apply, --yes, --dry-run, --progress, --root and -o, as every command with a plan has them."""
    for option in (
        click.option("--apply", is_flag=True, help="Carry the plan out, after the cluster's name is typed."),
        click.option("--yes", is_flag=True, help="With --apply: do not ask."),
        click.option("--dry-run", is_flag=True, help="Only print the plan (what happens without --apply)."),
        click.option("--progress", is_flag=True, help="A line for each step, also where stderr is no terminal."),
        click.option(
            "--root",
            type=click.Path(exists=True, file_okay=False, readable=False, path_type=Path),
            default=Path("/"),
            help="A copied tree, to print the plan for; nothing is carried out there.",
        ),
        output_option,
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class Answers:
    """What a person said beforehand: whether to carry the plan out, and how much to be told."""

    root: Path = Path("/")
    apply: bool = False
    yes: bool = False
    dry_run: bool = False
    progress: bool = False

    @property
    def applies(self) -> bool:
        return self.apply and not self.dry_run


def present(plan: Plan[Host], answers: Answers, output: str, again: str) -> None:
    """Print the plan, and carry it out where that was asked for and agreed to. `again` is the command to apply it."""
    if not answers.applies:
        fitting = carrying.fitted(Root(answers.root), plan)
        emit(as_data(fitting, "planned"), output, lambda: as_text(fitting, again))
        return
    refuse_elsewhere(plan, answers)
    carry(plan, answers, output)


def refuse_elsewhere(plan: Plan[Host], answers: Answers) -> None:
    scratch_marker.refuse_elsewhere(Root(answers.root))
    if not plan.steps:
        raise UsageError("the plan has no steps: there is nothing to carry out")


def carry(
    plan: Plan[Host],
    answers: Answers,
    output: str,
    prepare: Callable[[], None] = carrying.nothing,
    discard: Callable[[], None] = carrying.nothing,
) -> None:
    """Print, ask, `prepare` what touches nothing yet, carry out, and tell how long each part took."""
    root = Root(answers.root)
    plan = carrying.fitted(root, plan)
    if output == "table":
        click.echo(as_text(plan, ""))
    if not answers.yes:
        agree(plan)
    prepared = 0.0

    def timed() -> None:
        nonlocal prepared
        begun = time.monotonic()
        prepare()
        prepared = time.monotonic() - begun

    with telling(root, plan, answers.progress) as tell:
        carrying.start(root, plan, tell, timed, discard)
    took = carrying.durations(root, plan.id)
    data = as_data(plan, str(Phase.DONE), took) | {"preparedSeconds": round(prepared, 3)}
    emit(data, output, lambda: _done(plan, prepared, took))


def _done(plan: Plan[Host], prepared: float, took: tuple[float, ...]) -> str:
    slow = [(seconds, number) for number, seconds in enumerate(took, 1) if seconds >= SLOW]
    parts = [f"step {number} {seconds:.1f} s" for seconds, number in sorted(slow, reverse=True)[:5]]
    first = f"{prepared:.1f} s before anything was stopped, then " if prepared >= SLOW else ""
    spent = f"{first}{sum(took):.1f} s{': ' + ', '.join(parts) if parts else ''}"
    return f"done in {spent}\n\n  drtool undo {plan.id}   takes it back"


def agree(plan: Plan[Host]) -> None:
    if not sys.stdin.isatty():
        raise UsageError("nobody is here to agree to the plan", "add --yes")
    typed = click.prompt(
        f"type the cluster's name ({plan.cluster}) to carry it out", err=True, default="", show_default=False
    )
    if typed != plan.cluster:
        raise UsageError(f"{typed!r} is not {plan.cluster!r}: nothing was done")


@contextmanager
def telling(root: Root, plan: Plan[Host], progress: bool) -> Iterator[Callable[[Mark], None]]:
    """Steps as they go, on stderr. A terminal that goes away does not stop the plan: it goes on, or can be resumed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lines = progress or sys.stderr.isatty()
    begun = time.monotonic()

    def tell(mark: Mark) -> None:
        nonlocal begun, lines
        if mark.event in (Event.BEGUN, Event.UNDOING):
            begun = time.monotonic()
        if not lines:
            return
        try:
            click.echo(_line(plan, mark, time.monotonic() - begun), err=True, nl=mark.event is not Event.BEGUN)
        except OSError:
            lines = False
            nobody_reads()

    try:
        yield tell
    except (KeyboardInterrupt, SystemExit, OSError):
        if not carrying.unfinished(root, plan.id):
            raise
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


def as_data(plan: Plan[Host], phase: str, took: tuple[float, ...] = ()) -> dict[str, Any]:
    """`took` are the seconds of each step, where they were carried out."""
    steps: list[dict[str, Any]] = [
        {"number": number, "step": type(step).__name__, "text": step.describe()}
        for number, step in enumerate(plan.steps, 1)
    ]
    for step, seconds in zip(steps, took, strict=False):
        step["seconds"] = round(seconds, 3)
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
