"""Options that every command with a store shares, and the configuration they make."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from drtool.cli._output import visible
from drtool.cli._types import ANY_PATH
from drtool.config import Config, load
from drtool.core.events import TELL
from drtool.host.passphrase import ASK

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
OPTIONS = {
    "config": None,
    "store": "store.url",
    "store_endpoint": "store.endpoint",
    "identity": "identities",
    "trusted": "signing.trusted",
}


def store_options(command: Decorated) -> Decorated:
    """--config, --store and what opens and proves backups; `configured` takes them out of the keyword arguments."""
    for option in reversed(
        (
            click.option("--config", type=ANY_PATH, help="Instead of /etc/drtool/config.yaml."),
            click.option("--store", metavar="URL", help="file:///path or s3://bucket/prefix."),
            click.option("--store-endpoint", metavar="URL", help="The S3 endpoint, where it is not AWS."),
            click.option("--identity", multiple=True, metavar="FILE", help="An age identity that opens backups."),
            click.option("--trusted", multiple=True, metavar="FILE", help="A public key: unsigned is not believed."),
        )
    ):
        command = option(command)
    return command


def configured(options: dict[str, Any], more: dict[str, object] | None = None) -> Config:
    """The configuration in force under these options, which are removed from `options`; `more` has dotted names."""
    TELL.set(lambda line: click.echo(f"drtool: {visible(line)}", err=True))
    if sys.stdin.isatty():
        ASK.set(lambda path: str(click.prompt(f"passphrase of {path}", hide_input=True, err=True)))
    taken = {name: options.pop(name) for name in OPTIONS}
    flags: dict[str, object] = {dotted: taken[name] for name, dotted in OPTIONS.items() if dotted}
    return load(taken["config"], flags={**flags, **(more or {})})
