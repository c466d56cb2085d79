"""`drtool config`"""

from __future__ import annotations

from typing import Any

import click

from drtool.cli._output import columns, emit, output_option, visible
from drtool.cli._store import configured, store_options
from drtool.config import EXAMPLE, shown, unknown_variables


@click.group(epilog="Example: drtool config example > /etc/drtool/config.yaml && chmod 600 /etc/drtool/config.yaml")
def command() -> None:
    """The configuration: an example, what is in force, and whether it works."""


@command.command()
def example() -> None:
    """Print a configuration with every setting and its meaning."""
    click.echo(EXAMPLE, nl=False)


@command.command()
@store_options
@output_option
def show(output: str, **options: Any) -> None:
    """Print what is in force: file, environment and options together, secrets masked."""
    data = shown(configured(options))
    emit({"schemaVersion": 1, **data}, "yaml" if output == "table" else output, lambda: "")


@command.command()
@store_options
@output_option
def check(output: str, **options: Any) -> int:
    """Try the configuration: keys, spool, metrics, and on the store every permission, deletion included.

    No ping is sent: its host is only connected to. Exit status 1: something of it does not work.
    """
    config = configured(options)
    from drtool.commands.trying import tried

    trials = tried(config)
    unknown = unknown_variables()
    data = {
        "schemaVersion": 1,
        "store": config.store.url,
        "good": not any(one.problem for one in trials),
        "trials": [{"name": one.name, "good": not one.problem, "problem": one.problem} for one in trials],
        "unknownVariables": list(unknown),
    }
    rows = [(one.name, one.problem or "good") for one in trials]
    emit(data, output, lambda: columns(("TRIED", "RESULT"), rows))
    for hint in dict.fromkeys(one.hint for one in trials if one.hint):
        click.echo(f"drtool: {hint}", err=True)
    for name in unknown:
        click.echo(f"drtool: {visible(name)} in the environment is no setting of drtool: it does nothing", err=True)
    return 0 if data["good"] else 1
