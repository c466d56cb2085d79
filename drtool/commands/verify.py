"""Reads a stored backup back: sizes, hashes, signature; and where a key is at hand its inside: the db's structure."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from drtool.commands import fetch
from drtool.commands.fetch import Shelf
from drtool.core.errors import Unsound
from drtool.core.events import Listener, silent
from drtool.host.memory import one_arena
from snapshots import inventory
from snapshots.catalog import Backup, Record, Report
from snapshots.stores.store import StoreFailed
from snapshots.stream.check import StreamCheck
from snapshots.take import figures_of
from snapshots.transfer import sealed_pieces


@dataclass(frozen=True, slots=True)
class Verdict:
    """`opened` where a key was at hand, `signed` where a trusted key signed the record."""

    backup: Backup
    opened: bool
    signed: bool
    seconds: float
    noted: bool = False


class _Looked(msgspec.Struct, frozen=True, rename="camel"):
    schema_version: int
    node: str
    opened: bool
    problem: str


def verify(shelf: Shelf, wanted: str, cluster: str = "", listener: Listener = silent) -> Verdict:
    """Raises Unsound where the backup is bad, CannotOpen for a wrong key or signature, and what the store raises.

    What it came to is left beside the backup for `backups` and retention, where the store may be written.
    """
    began = datetime.now(UTC)
    one_arena()
    backup = shelf.choose(wanted, cluster)
    opens = fetch.can_open(shelf, backup)
    try:
        _look(shelf, backup, opens, listener)
    except Unsound as bad:
        _note(shelf, backup, began, good=False, opened=opens, problem=bad.what)
        raise
    noted = _note(shelf, backup, began, good=True, opened=opens)
    return Verdict(backup, opens, backup.signed, (datetime.now(UTC) - began).total_seconds(), noted)


def _look(shelf: Shelf, backup: Backup, opens: bool, listener: Listener) -> None:
    if not opens:
        for part in backup.record.parts:
            for _ in sealed_pieces(shelf.store, backup.record.path, part, listener):
                pass
        return
    check = StreamCheck(backup.id)
    for piece in fetch.db_pieces(shelf, backup, listener):
        check.feed(piece)
    _compare(backup.record, figures_of(check.finish(), backup.id))
    fetch.node_bundle(shelf, backup)


def _compare(record: Record, found: dict[str, object]) -> None:
    for name, value in found.items():
        if getattr(record, name) != value:
            raise Unsound(
                f"{record.id}: the db says {name.replace('_', ' ')} {value}, its record {getattr(record, name)}",
                "the record was not written for this db: use another backup",
            )


def _note(shelf: Shelf, backup: Backup, at: datetime, *, good: bool, opened: bool, problem: str = "") -> bool:
    body = msgspec.json.encode(_Looked(1, socket.gethostname(), opened, problem)) + os.linesep.encode()
    try:
        inventory.report(shelf.store, backup.record, Report("verify", at, good, opened), body)
    except StoreFailed:
        return False  # a store that is only read keeps no notes
    return True
