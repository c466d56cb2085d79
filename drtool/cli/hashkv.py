"""`drtool hashkv`"""

from __future__ import annotations

from pathlib import Path

import click

from drtool.cli._output import emit, output_option
from drtool.cli._progress import shown
from drtool.cli._types import ANY_PATH


@click.command(epilog="Example: drtool hashkv snapshot.db --revision 1200")
@click.argument("file", type=ANY_PATH)
@click.option("--revision", default=0, show_default="the newest", help="Hash the keys as of this revision.")
@click.option("--progress", is_flag=True, help="Progress as lines where stderr is no terminal.")
@output_option
def command(file: Path, revision: int, progress: bool, output: str) -> None:
    """What `etcdctl endpoint hashkv` answers on the running server, from FILE, which stays untouched.

    FILE is a snapshot, a member's snap/db or its data directory.
    """
    from drtool.commands.hashkv import hashkv

    with shown(progress) as listener:
        found = hashkv(file, revision, listener)
    data = {
        "schemaVersion": 1,
        "hash": found.hash,
        "compactRevision": found.compact_revision,
        "revision": found.revision,
    }
    emit(
        data,
        output,
        lambda: f"{found.hash} at revision {found.revision}, compacted at {found.compact_revision}",
    )
