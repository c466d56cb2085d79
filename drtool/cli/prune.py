"""`drtool prune`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from drtool.cli._output import emit, output_option
from drtool.cli._progress import size
from drtool.cli._store import configured, store_options

if TYPE_CHECKING:
    from drtool.commands.prune import Pruned


@click.command(epilog="Example: drtool prune --dry-run")
@store_options
@click.option("--cluster", default="", metavar="ID", help="Only this cluster's backups.")
@click.option("--dry-run", is_flag=True, help="Print exactly what would go, and remove nothing.")
@output_option
def command(cluster: str, dry_run: bool, output: str, **options: Any) -> None:
    """Apply the retention rules of the configuration."""
    config = configured(options)
    from drtool.commands import prune
    from drtool.commands.fetch import shelf

    held = shelf(config)
    done = prune.plan(held, config, cluster)
    if not dry_run:
        done = prune.carry_out(held, done, config)
    for path in done.broken:
        click.echo(f"drtool: {path} cannot be believed and was left alone", err=True)
    for one, why in done.held:
        click.echo(f"drtool: {one.id} stays: {why}", err=True)
    emit(_data(done, dry_run), output, lambda: _text(done, dry_run))


def _text(done: Pruned, dry_run: bool) -> str:
    lines = []
    for cluster, decision in done.decisions.items():
        lines.append(f"cluster {cluster}: {len(decision.keep)} stay, {len(decision.drop)} go")
        lines += [f"  keep   {name}  ({', '.join(why)})" for name, why in sorted(decision.keep.items(), reverse=True)]
        lines += [f"  remove {one.id}  {size(one.size)}" for one in decision.drop]
    if dry_run:
        lines.append("dry run: nothing was removed")
    return "\n".join(lines)


def _data(done: Pruned, dry_run: bool) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "dryRun": dry_run,
        "clusters": [
            {
                "cluster": cluster,
                "keep": {name: list(why) for name, why in decision.keep.items()},
                "remove": [one.id for one in decision.drop],
            }
            for cluster, decision in done.decisions.items()
        ],
        "removed": [one.id for one in done.removed],
        "held": [{"backup": one.id, "reason": why} for one, why in done.held],
        "broken": list(done.broken),
    }
