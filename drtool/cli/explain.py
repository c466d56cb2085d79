"""`drtool explain`"""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from drtool.cli._output import columns, emit, output_option
from drtool.commands.explain import as_data, explain, listed, title
from drtool.core.check import Check


def _ids(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(check.id, help=title(check)) for check in listed() if check.id.startswith(incomplete)]


@click.command(epilog="Example: drtool explain cert-expired")
@click.argument("id_", metavar="[ID]", required=False, shell_complete=_ids)
@output_option
def command(id_: str | None, output: str) -> None:
    """Say what a check looks for, why it matters and how to fix it; without ID: the list."""
    if id_ is None:
        checks = listed()
        emit(as_data(checks), output, lambda: _list(checks))
        return
    check = explain(id_)
    emit(as_data([check]), output, lambda: _text(check))


def _list(checks: tuple[Check, ...]) -> str:
    rows = [(check.id, str(check.severity), check.layer.name.lower(), title(check)) for check in checks]
    return columns(("ID", "SEVERITY", "LAYER", "WHAT"), rows)


def _text(check: Check) -> str:
    lines = [f"{check.id} ({check.severity}, {check.layer.name.lower()})", "", check.explanation]
    if check.explains:
        lines += ["", f"It explains: {', '.join(check.explains)}"]
    return "\n".join(lines)
