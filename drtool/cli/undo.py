"""`drtool undo`"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from drtool.cli._output import columns, emit, output_option
from drtool.cli._types import ANY_PATH


@click.command(epilog="Example: drtool undo --list")
@click.argument("plan", default="", metavar="[PLAN]")
@click.option("--list", "listing", is_flag=True, help="Plans of this node, and what each moved aside, with sizes.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--progress", is_flag=True, help="A line for each step, also where stderr is no terminal.")
@click.option("--root", type=ANY_PATH, default=Path("/"), hidden=True)
@output_option
def command(plan: str, listing: bool, yes: bool, progress: bool, root: Path, output: str) -> None:
    """Takes back a plan that was carried out, newest step first; without PLAN, the newest one.

    PLAN is the id that was printed, or its beginning.
    """
    from drtool.cli._plan import agree, as_data, as_text, telling
    from drtool.commands import carrying, scratch_marker
    from drtool.core.plan import Phase
    from drtool.host.root import Root

    where = Root(root)
    scratch_marker.refuse_elsewhere(where)
    if listing:
        found = carrying.listed(where)
        emit(_as_data(found), output, lambda: _as_text(found))
        return
    chosen = carrying.find(where, plan, Phase.UNFINISHED, Phase.DONE).plan
    if not yes:
        click.echo(f"to be taken back, from the last step to the first:\n{as_text(chosen, '')}", err=True)
        agree(chosen)
    with telling(where, chosen, progress) as tell:
        carrying.undo(where, chosen.id, tell)
    emit(as_data(chosen, str(Phase.TAKEN_BACK)), output, lambda: f"taken back: {chosen.title}")


def _as_data(found: Any) -> dict[str, Any]:
    plans = [
        {
            "id": one.id,
            "title": one.title,
            "phase": str(one.state.phase),
            "at": one.at,
            "failure": one.state.failure,
            "kept": [{"path": kept.path, "size": kept.size} for kept in one.kept],
        }
        for one in found
    ]
    return {"schemaVersion": 1, "plans": plans}


def _as_text(found: Any) -> str:
    if not found:
        return "no plan was ever carried out on this node"
    rows = [(one.id, str(one.state.phase), one.title) for one in found]
    kept = [(kept.path, f"{kept.size:,}", one.id) for one in found for kept in one.kept]
    text = columns(("PLAN", "PHASE", "WHAT"), rows)
    return f"{text}\n\n{columns(('MOVED ASIDE', 'BYTES', 'BY'), kept)}" if kept else text
