"""`drtool collect`"""

from __future__ import annotations

from pathlib import Path

import click

from drtool.cli._output import emit, output_option, visible
from drtool.cli._types import ANY_PATH
from drtool.commands.collect import Collected, collect
from drtool.commands.tree import opened


@click.command(epilog="Example: drtool collect -f cp-1.tar.gz; elsewhere: drtool check --root cp-1.tar.gz")
@click.option(
    "-f",
    "--file",
    type=click.Path(readable=False, path_type=Path, dir_okay=False),
    help="Where to write; else drtool-NODE-TIME.tar.gz here.",
)
@click.option(
    "--root",
    type=ANY_PATH,
    default=Path("/"),
    help="A node's tree instead of this machine.",
)
@click.option("--no-probe", is_flag=True, help="Files only: ask no endpoint, runtime or unit of this machine.")
@output_option
def command(file: Path | None, root: Path, no_probe: bool, output: str) -> int:
    """Bundle this node's evidence, without private keys, tokens or Secret data, for `check --root` elsewhere."""
    with opened(root) as tree:
        made = collect(tree, file, probe=not no_probe)
    emit(as_data(made), output, lambda: as_text(made))
    return 0


def as_data(made: Collected) -> dict[str, object]:
    return {
        "schemaVersion": 1,
        "file": str(made.path),
        "bytes": made.size,
        "files": made.files,
        "unreadable": [{"path": path, "reason": reason} for path, reason in made.unreadable],
    }


def as_text(made: Collected) -> str:
    lines = [f"{made.path}: {made.files} files, {made.size} bytes; private keys, tokens and Secrets are left out"]
    lines += [f"  not in it: {visible(path)}: {visible(reason)}" for path, reason in made.unreadable]
    return "\n".join(lines)
