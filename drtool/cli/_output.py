"""How every command prints data: a table for people, JSON or YAML for programs, always on stdout."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

LEAST = 24
"""Characters in a line that are still worth reading."""

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
    """Left-aligned columns, two spaces apart, control characters made visible.

    On a terminal that is too narrow the last column goes over several lines, or each row over lines of its own; rows
    that the terminal folds once are left to it.
    """
    shown = [[visible(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[i]) for row in shown) for i in range(len(heads))]
    room, before = terminal_width(), sum(width + 2 for width in widths[:-1])
    if room and room - before < LEAST and before + widths[-1] > 2 * room:
        return "\n".join(_block(shown[0], row, room) for row in shown[1:])
    if room and room - before >= LEAST:
        shown = [[*cells, _over_lines(last, room, before)] for *cells, last in shown]
        widths[-1] = 0
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown
    )


def _block(heads: Sequence[str], row: Sequence[str], room: int) -> str:
    width = max(map(len, heads[1:]))
    cells = zip(heads[1:], row[1:], strict=True)
    return "\n".join([row[0], *(f"  {head:{width}}  {_over_lines(cell, room, width + 4)}" for head, cell in cells)])


def _over_lines(text: str, room: int, indent: int) -> str:
    lines = textwrap.wrap(text, max(LEAST, room - indent), break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines)


def terminal_width() -> int | None:
    """None where stdout is no terminal: then nothing is cut or moved, so that programs find one row a line."""
    return os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else None


def visible(text: str) -> str:
    """Text from a node's files as a terminal may safely show it."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def nobody_reads() -> None:
    """What is still buffered for stderr goes nowhere: Python would end with 120 for it, whatever the command did."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)


def colour() -> bool:
    """Colour only on a terminal, and never where NO_COLOR is set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
