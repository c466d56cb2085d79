"""`drtool upgrade-plan`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from drtool.cli._output import emit, output_option, visible
from drtool.cli._types import ANY_PATH
from drtool.host.root import Root

if TYPE_CHECKING:
    from drtool.commands.upgrade_plan import Step, UpgradePlan


@click.command(epilog="Example: drtool upgrade-plan --to 1.37 --root /mnt/cp-1 --root /mnt/cp-2")
@click.option("--to", required=True, metavar="1.X", help="The minor, or one patch of it, to go to.")
@click.option(
    "--root",
    "roots",
    type=ANY_PATH,
    multiple=True,
    help="A control plane's tree; again for others.",
)
@output_option
def command(to: str, roots: tuple[Path, ...], output: str) -> None:
    """The ordered steps of an upgrade under the version skew policy, with what would stop it. Changes nothing.

    Refuses a skipped minor (exit status 20).
    """
    from drtool.commands.upgrade_plan import as_data, upgrade_plan

    plan = upgrade_plan([Root(root.resolve()) for root in roots or (Path("/"),)], to)
    emit(as_data(plan), output, lambda: as_text(plan))


def as_text(plan: UpgradePlan) -> str:
    lines = [f"from {plan.current} to {plan.target}"]
    lines += [f"  {what:40} {visible(source)}" for what, source in plan.cast.sources.items()]
    for number, step in enumerate(plan.steps, 1):
        lines += _lines(number, step)
    lines += [f"RISK: {visible(risk)}" for risk in plan.risks]
    lines += [f"not seen: {visible(what)}" for what in plan.unseen]
    return "\n".join(lines)


def _lines(number: int, step: Step) -> list[str]:
    where = "" if step.node == "-" else f"{step.node}: "
    lines = [f"{number}. {where}{step.what}", *(f"     {command}" for command in step.commands)]
    if step.restarts:
        lines.append(f"     restarts: {step.restarts}")
    lines += [f"     BLOCKED by PodDisruptionBudget {one.budget}: {one.why}" for one in step.blocked]
    lines += [f"     OUTSIDE the skew policy after this step: {words}" for words in step.leaves]
    return lines
