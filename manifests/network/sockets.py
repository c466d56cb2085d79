"""Listening TCP sockets from the kernel's table in a tree: /proc/net/tcp and tcp6."""

from __future__ import annotations

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from drtool.host.listeners import rows
from drtool.host.root import Entry
from manifests.live import Listener


def listening(*tables: Entry) -> tuple[Listener, ...]:
    """EvidenceMissing where the tree holds none of the tables. The table names no program: `command` is ""."""
    if all(table.data is None for table in tables):
        raise EvidenceMissing(f"{tables[0].path}: {tables[0].error or 'not a file'}")
    return tuple(found for table in tables for found in _listeners(table))


def _listeners(table: Entry) -> Iterator[Listener]:
    lines = (table.data or b"").decode("ascii", "replace").splitlines()
    for number, address, port, _ in rows(lines):
        yield Listener(address, port, None, "", Evidence(table.path, number, f"{address} port {port} listens"))
