"""Tables with the columns that `kubectl get` shows: one module for a family of kinds, each holding `COLUMNS` by kind.

The rules are those of Kubernetes' own printers (pkg/printers/internalversion/printers.go of 1.37).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from snapshots.registry.envelope import MISTYPED
from snapshots.registry.objects import Object
from snapshots.registry.resources import Resource
from snapshots.registry.tables.cells import INVALID, NAME_AND_AGE, Column


class Table(NamedTuple):
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def table(resource: Resource, found: Sequence[Object], now: datetime, wide: bool = False, all_: bool = False) -> Table:
    """`found` are objects of `resource`; `all_` puts their namespace first. What cannot be read says so in one cell."""
    shown = [column for column in columns(resource) if wide or not column.wide]
    spaces = all_ and resource.namespaced
    heads = tuple(column.head for column in shown)
    rows = []
    for each in found:
        cells = _unreadable(each, len(shown)) if each.trouble else tuple(_cell(column, each, now) for column in shown)
        rows.append((each.namespace, *cells) if spaces else cells)
    return Table(("NAMESPACE", *heads) if spaces else heads, tuple(rows))


@cache
def _of_kinds() -> Mapping[str, tuple[Column, ...]]:
    """Columns by kind; loaded when a table is made, since checks over objects need no more than the cells."""
    from snapshots.registry.tables import network, nodes, policy, storage, workloads

    return workloads.COLUMNS | network.COLUMNS | nodes.COLUMNS | storage.COLUMNS | policy.COLUMNS


def columns(resource: Resource) -> tuple[Column, ...]:
    if resource.custom:
        from snapshots.registry.tables import custom

        return custom.columns(resource.printer_columns)
    return _of_kinds().get(resource.kind, NAME_AND_AGE)


def _cell(column: Column, found: Object, now: datetime) -> str:
    """Values of a type that no API server takes, as a db edited by hand may hold, spoil their own cell only."""
    try:
        return column.cell(found.body, now)
    except (*MISTYPED, OverflowError):
        return INVALID


def _unreadable(found: Object, width: int) -> tuple[str, ...]:
    cells = (found.name, f"<{found.trouble} at revision {found.revision}>")
    return (*cells[:width], *[""] * (width - len(cells)))
