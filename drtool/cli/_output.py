"""How every command prints data: a table for people, JSON or YAML for programs, always on stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def output_option(command: Decorated) -> Decorated:
    return click.option(
        "-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
    )(command)


def emit(data: dict[str, Any], output: str, table: Callable[[], str]) -> None:
    """`data` has camelCase keys and starts with `schemaVersion`; `table` is asked only where it is printed."""
    if output == "json":
        import json

        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    elif output == "yaml":
        import yaml

        click.echo(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), nl=False)
    else:
        click.echo(table())


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns, two spaces apart, control characters made visible."""
    shown = [[visible(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[i]) for row in shown) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown
    )


def visible(text: str) -> str:
    """Text from a node's files as a terminal may safely show it."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def colour() -> bool:
    """Colour only on a terminal, and never where NO_COLOR is set (https://no-color.org)."""
    import os

    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
