"""Custom resources: the columns that their CRD asks for, NAME and AGE where it asks for none."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from snapshots.registry.resources import PrinterColumn
from snapshots.registry.tables.cells import NAME, NAME_AND_AGE, Cell, Column, since

STEP = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\])+)|\[(?P<quoted>'[^']*'|"[^"]*")\]|\[(?P<index>-?\d+|\*)\]
    |\[\?\(\s*@\.(?P<key>[\w.]+)\s*==\s*(?P<value>"[^"]*"|'[^']*'|\w+)\s*\)\]""",
    re.VERBOSE,
)


def columns(asked: tuple[PrinterColumn, ...] | None) -> tuple[Column, ...]:
    if asked is None:
        return NAME_AND_AGE
    return (NAME, *(Column(each.head.upper(), _cell(each), each.wide) for each in asked))


def _cell(column: PrinterColumn) -> Cell:
    def cell(body: dict[str, Any], now: datetime) -> str:
        found = values(body, column.path)
        if not found:
            return ""
        if column.kind == "date":
            return since(found[0], now)
        return ",".join(_text(each) for each in found)

    return cell


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def values(body: Any, path: str) -> list[Any]:
    """What a JSONPath as CRDs may use it selects: names, quoted names, indices, `*`, and `?(@.key=="value")`."""
    found, at = [body], 0
    while at < len(path):
        step = STEP.match(path, at)
        if step is None:
            return []
        found = [each for value in found for each in _step(value, step)]
        at = step.end()
    return found


def _step(value: Any, step: re.Match[str]) -> list[Any]:
    name = re.sub(r"\\(.)", r"\1", step["name"]) if step["name"] else (step["quoted"] or "")[1:-1]
    if name:
        return [value[name]] if isinstance(value, dict) and name in value else []
    if not isinstance(value, list):
        return []
    if step["key"]:
        wanted = step["value"].strip("\"'")
        return [each for each in value if isinstance(each, dict) and _text(each.get(step["key"])) == wanted]
    if step["index"] == "*":
        return value
    place = int(step["index"])
    return [value[place]] if -len(value) <= place < len(value) else []
