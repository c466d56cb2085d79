"""`drtool fleet` and `drtool fleet job`"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import click

from drtool.cli._output import columns, emit, output_option
from drtool.cli._store import configured, store_options
from drtool.cli.backups import Duration

LATE = 4


@click.group(
    invoke_without_command=True, epilog="Example: drtool fleet --store s3://backups --backup-age 26h --drill-age 8d"
)
@store_options
@click.option("--backup-age", type=Duration(), default="26h", show_default=True, help="How old a backup may be.")
@click.option(
    "--drill-age", type=Duration(), default="8d", show_default=True, help="How old the last good drill may be."
)
@output_option
@click.pass_context
def command(ctx: click.Context, /, backup_age: float, drill_age: float, output: str, **options: Any) -> int:
    """All clusters of a store: last backup, last drill, and who is late. Exit status 4 where one is."""
    config = configured(options)
    from drtool.commands.fetch import shelf
    from drtool.commands.fleet import Target, as_data, fleet

    held = shelf(config)
    target = Target(timedelta(seconds=float(backup_age)), timedelta(seconds=float(drill_age)))
    found = fleet(held, target, datetime.now(UTC))
    ctx.obj = found
    if ctx.invoked_subcommand is not None:
        return 0
    emit(as_data(found, held.store.url), output, lambda: _table(found))
    return LATE if any(one.late for one in found) else 0


@command.command("job", epilog="Example: drtool fleet --store s3://backups job --image registry.example/drtool:0.1.0")
@click.option("--image", required=True, help="An image with drtool, etcd and kube-apiserver.")
@click.option("--namespace", default="drtool", show_default=True)
@click.option("--parallel", type=click.IntRange(1, 100), default=4, show_default=True)
@click.pass_context
def job_command(ctx: click.Context, image: str, namespace: str, parallel: int) -> int:
    """The manifest of an Indexed Job that drills every cluster, one index a cluster."""
    from drtool.commands.fleet import job

    click.echo(job(ctx.obj, image, namespace, parallel), nl=False)
    return 0


def _table(found: tuple[Any, ...]) -> str:
    if not found:
        return "the store holds no cluster"
    rows = [
        (
            one.cluster,
            ",".join(one.nodes),
            str(one.backups),
            f"{one.newest.record.taken_at:%Y-%m-%d %H:%M}" if one.newest else "none",
            f"{one.drilled:%Y-%m-%d %H:%M}" if one.drilled else "never",
            "; ".join(one.late) or "on time",
        )
        for one in found
    ]
    return columns(("CLUSTER", "NODES", "BACKUPS", "NEWEST VERIFIED", "LAST GOOD DRILL", "STANDING"), rows)
