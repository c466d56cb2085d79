"""`drtool backup`"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from drtool.cli._output import emit, output_option, visible
from drtool.cli._progress import shown, size
from drtool.cli._store import configured, store_options
from drtool.cli._types import ANY_PATH
from drtool.commands.outside import Outside
from drtool.host.root import Root

if TYPE_CHECKING:
    from drtool.commands.backup import Result

NOT_VERIFIED = 5


@click.command(epilog="Example: drtool backup --store s3://backups/cp --recipient age1...")
@store_options
@click.option("--recipient", multiple=True, metavar="AGE1...", help="Seal for this age public key.")
@click.option("--root", type=ANY_PATH, default=Path("/"), help="The node's tree.")
@click.option("--endpoint", multiple=True, metavar="URL", help="Take the snapshot from this member.")
@click.option("--cacert", metavar="FILE", help="CA of etcd's certificate.")
@click.option("--cert", metavar="FILE", help="Client certificate for etcd.")
@click.option("--key", metavar="FILE", help="Its key.")
@click.option("--spool", metavar="DIR", help="Where a backup waits while the store is down.")
@click.option("--metrics-file", metavar="FILE", help="Write metrics for node_exporter's textfile collector.")
@click.option("--progress", is_flag=True, help="Progress as lines where stderr is no terminal.")
@output_option
def command(root: Path, progress: bool, output: str, **options: Any) -> int:
    """Take one backup now: etcd snapshot and node bundle, sealed, stored, read back.

    Then the retention rules are applied, where the configuration has any: without `retention` in it no backup is
    deleted.

    Exit status 5: stored, but not verified, incomplete, or waiting in the spool.
    """
    names = {
        "recipient": "recipients",
        "endpoint": "etcd.endpoints",
        "cacert": "etcd.ca",
        "cert": "etcd.cert",
        "key": "etcd.key",
        "spool": "spool.directory",
        "metrics_file": "metricsFile",
    }
    given = {dotted: options.pop(name) for name, dotted in names.items()}
    config = configured(options, given)
    from drtool.commands.backup import backup
    from drtool.commands.fetch import shelf

    outside = Outside(config)
    try:
        with outside:
            held = shelf(config)
            if not config.recipients:
                click.echo("drtool: no recipient is configured: this backup is NOT encrypted", err=True)
            with shown(progress) as listener:
                pinned = bool(given["etcd.endpoints"])
                result = backup(config, held, Root(root.resolve()), pinned=pinned, listener=listener)
            outside.finished(result.record, stored=not result.spooled)
        _say(_warnings(result))
    finally:  # a run that fails is the one whose ping matters most, and keeps its exit status
        with suppress(OSError):
            _say(outside.troubles)
    emit(_data(result, bool(config.recipients)), output, lambda: _summary(result))
    return 0 if result.good else NOT_VERIFIED


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"drtool: {visible(line)}", err=True)


def _warnings(result: Result) -> list[str]:
    lines = list(result.warnings)
    if result.spooled:
        lines.append(f"the store is down, the backup waits in {result.store} for the next run: {result.failure}")
    elif result.record.verified is None:
        lines.append("stored, but NOT verified: it could not be read back")
    lines += [f"incomplete: {one}" for one in result.record.incomplete]
    return lines


def _summary(result: Result) -> str:
    record = result.record
    state = "waits in the spool" if result.spooled else "verified" if record.verified else "NOT verified"
    state += ", INCOMPLETE" if record.incomplete else ""
    moved = f", {len(result.sent)} sent from the spool" if result.sent else ""
    moved += f", {len(result.pruned)} pruned" if result.pruned else ""
    sizes = f"{size(record.db.plain_size)} -> {size(sum(part.sealed_size for part in record.parts))}"
    what = f"{record.id}: revision {record.revision}, {record.keys} keys, {sizes}"
    return f"{what}, {state}{moved}, {result.store}, {result.seconds:.1f} s"


def _data(result: Result, encrypted: bool) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "backup": msgspec.json.decode(msgspec.json.encode(result.record)),
        "store": result.store,
        "verified": result.record.verified is not None,
        "complete": not result.record.incomplete,
        "encrypted": encrypted,
        "spooled": result.spooled,
        "failure": result.failure,
        "sent": list(result.sent),
        "pruned": list(result.pruned),
        "warnings": list(result.warnings),
        "seconds": round(result.seconds, 3),
    }
