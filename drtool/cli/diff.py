"""`drtool diff`"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from drtool.cli._objects import SOURCE, opening, source_options
from drtool.cli._output import emit, output_option, visible

if TYPE_CHECKING:
    from drtool.commands.diff import Changed

MARKS = {"added": "+", "removed": "-", "changed": "~"}
WIDTH = 100


@click.command(epilog="Example: drtool diff latest live -n shop", help=None)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("-k", "--kind", "kinds", default="", help="Only these kinds: deploy,svc.")
@click.option("-n", "--namespace", default="", help="Only this namespace.")
@click.option("-l", "--selector", default="", help="Only objects with these labels.")
@click.option("--noise", is_flag=True, help="Compare status, what the server keeps in metadata, leases and events too.")
@click.option("--brief", is_flag=True, help="Objects only, not their fields.")
@output_option
@source_options
def command(before: str, after: str, brief: bool, output: str, **options: Any) -> int:
    """Compare the objects of two sources: + only in B, - only in A, ~ in both and not the same.

    Exit status 0: no difference; 1: there are some.
    """
    from drtool.commands.diff import Scope, as_data, diff
    from drtool.commands.opening import opened
    from snapshots.registry import selectors

    kinds, namespace, noise = (options.pop(name) for name in ("kinds", "namespace", "noise"))
    selector = selectors.parse(options.pop("selector"))
    with opening(options, managed=noise) as how, opened(before, how) as left, opened(after, how) as right:
        resources = left.resources.find(kinds) if kinds else ()
        found = list(diff(left, right, Scope(resources, namespace, selector, noise)))
        data = {
            "schemaVersion": 1,
            "before": {"source": left.name, "revision": left.source.revision},
            "after": {"source": right.name, "revision": right.source.revision},
            "changes": [as_data(each) for each in found],
        }
    emit(data, output, lambda: _lines(found, brief))
    return int(bool(found))


command.help = f"{command.callback.__doc__}\n\n    A, B: {SOURCE}" if command.callback else None


def _lines(found: list[Changed], brief: bool) -> str:
    lines: list[str] = []
    heading = ""
    for each in sorted(found, key=lambda one: (one.object.namespace, one.object.kind, one.object.name)):
        here = f"{each.object.namespace or '(cluster)'}"
        if here != heading:
            lines += [*([""] if lines else []), here]
            heading = here
        lines.append(visible(f"  {MARKS[each.change]} {each.object.kind} {each.object.name}"))
        if each.trouble:
            lines.append(visible(f"      {each.trouble}"))
        for field in () if brief else each.fields:
            lines.append(visible(f"      {field.path}: {_short(field.before)} -> {_short(field.after)}"))
    counts = Counter(each.change for each in found)
    words = ", ".join(f"{counts[change]} {change}" for change in MARKS if counts[change]) or "no difference"
    return "\n".join([*lines, "", words] if lines else [words])


def _short(value: Any) -> str:
    from snapshots.registry.comparing import ABSENT

    if value is ABSENT:
        return "(none)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."
