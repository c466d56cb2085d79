"""`drtool resume`"""

from __future__ import annotations

from pathlib import Path

import click

from drtool.cli._output import emit, output_option
from drtool.cli._types import ANY_PATH


@click.command(epilog="Example: drtool resume")
@click.argument("plan", default="", metavar="[PLAN]")
@click.option("--progress", is_flag=True, help="A line for each step, also where stderr is no terminal.")
@click.option("--root", type=ANY_PATH, default=Path("/"), hidden=True)
@output_option
def command(plan: str, progress: bool, root: Path, output: str) -> None:
    """Goes on with a plan that was killed or interrupted, from the step it was at."""
    from drtool.cli._plan import as_data, telling
    from drtool.commands import carrying, scratch_marker
    from drtool.core.plan import Phase
    from drtool.host.root import Root

    where = Root(root)
    scratch_marker.refuse_elsewhere(where)
    chosen = carrying.find(where, plan, Phase.UNFINISHED).plan
    with telling(where, chosen, progress) as tell:
        carrying.resume(where, chosen.id, tell)
    emit(as_data(chosen, str(Phase.DONE)), output, lambda: f"done: {chosen.title}")
