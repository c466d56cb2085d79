"""`drtool verify`"""

from __future__ import annotations

from typing import Any

import click

from drtool.cli._output import emit, output_option
from drtool.cli._progress import shown, size
from drtool.cli._store import configured, store_options


@click.command(epilog="Example: drtool verify latest --store s3://backups/cp --identity key.txt")
@click.argument("backup", default="latest")
@store_options
@click.option("--cluster", default="", metavar="ID", help="Only this cluster's backups.")
@click.option("--progress", is_flag=True, help="Progress as lines where stderr is no terminal.")
@output_option
def command(backup: str, cluster: str, progress: bool, output: str, **options: Any) -> None:
    """Read a stored backup back: hashes, signature and, with an identity, the db's structure.

    Exit status 4: the backup is bad. 12: it cannot be opened, or its signature is wrong.
    """
    config = configured(options)
    from drtool.commands.fetch import shelf
    from drtool.commands.verify import verify

    with shown(progress) as listener:
        verdict = verify(shelf(config), backup, cluster, listener)
    record = verdict.backup.record
    if not verdict.opened:
        click.echo("drtool: no identity is given: the stored bytes were compared, but not opened", err=True)
    if record.signer and not verdict.signed:
        click.echo("drtool: it is signed, but no trusted key is configured: the signature was not checked", err=True)
    data = {
        "schemaVersion": 1,
        "backup": record.id,
        "cluster": record.cluster_id,
        "good": True,
        "opened": verdict.opened,
        "signed": verdict.signed,
        "revision": record.revision,
        "keys": record.keys,
        "seconds": round(verdict.seconds, 3),
    }
    opened = "opened, structure sound" if verdict.opened else "not opened"
    signed = "signature good" if verdict.signed else "signature not checked" if record.signer else "not signed"
    emit(
        data,
        output,
        lambda: (
            f"{record.id}: good: {size(verdict.backup.size)} as written, {opened}, {signed}, "
            f"revision {record.revision}, {record.keys} keys, {verdict.seconds:.1f} s"
        ),
    )
