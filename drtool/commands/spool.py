"""Sealed backups that wait on this node while the store is down: sent in order, bounded, the newest never dropped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from drtool.core.errors import Unsound
from drtool.core.events import Listener, silent
from snapshots import inventory
from snapshots.catalog import RECORD, SIGNATURE, Backup, Part
from snapshots.stores.directory import DirectoryStore
from snapshots.stores.store import KeyExists, KeyMissing, Store, StoreFailed, whole
from snapshots.take import StoreDamages
from snapshots.transfer import Sending, sealed_pieces


@dataclass(frozen=True, slots=True)
class Sent:
    """The ids of what went out, oldest first, and a line for each backup that did not: it stays where it is."""

    ids: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def send(waiting: DirectoryStore, store: Store, cluster: str, listener: Listener = silent) -> Sent:
    """Oldest first; each is read back and compared before its record, and leaves the spool after it.

    What cannot be believed or read is left and named: it must hold up neither the others nor a new backup. Raises what
    the store raises; what was not sent stays.
    """
    try:
        found = inventory.read(waiting, cluster=cluster)
    except StoreFailed as failed:
        return Sent(left=(f"the spool cannot be read, so nothing of it was sent: {failed}",))
    sent, left = [], list(_unbelieved(waiting, found))
    for one in reversed(found.backups):
        try:
            _send(waiting, store, one, listener)
        except Unsound as wrong:
            left.append(_left(waiting, one.record.path, wrong.what))
            continue
        sent.append(one.id)
        try:
            inventory.remove(waiting, [stored.key for stored in waiting.list(f"{one.record.path}/")])
        except StoreFailed as failed:
            left.append(f"{one.id} was sent, but it cannot be removed from the spool: {failed}")
    return Sent(tuple(sent), tuple(left))


def unbelieved(waiting: DirectoryStore, cluster: str) -> tuple[str, ...]:
    """A line for each spooled backup that its record, its sizes or their absence tell against. Raises StoreFailed."""
    return _unbelieved(waiting, inventory.read(waiting, cluster=cluster))


def _unbelieved(waiting: DirectoryStore, found: inventory.Inventory) -> tuple[str, ...]:
    broken = tuple(_left(waiting, path, wrong.what) for path, wrong in found.broken)
    return broken + tuple(
        _left(waiting, one.path, f"{one.path} has no record: it was never finished, or lost it")
        for one in found.orphans
    )


def _left(waiting: DirectoryStore, path: str, why: str) -> str:
    return f"a spooled backup cannot be sent: {why}; it stays in {waiting.root / path}, to be looked at and removed"


def _send(waiting: DirectoryStore, store: Store, one: Backup, listener: Listener) -> None:
    """Raises Unsound where what waits is at fault; it is read once before, so that no part of it goes out alone."""
    path = one.record.path
    for part in one.record.parts:
        for _ in _pieces(waiting, path, part, listener):
            pass
    signed = [(f"{path}/{name}", data) for name in (SIGNATURE, RECORD) if (data := _small(waiting, f"{path}/{name}"))]
    for part in one.record.parts:
        with Sending(store, f"{path}/{part.name}") as sending:
            for piece in _pieces(waiting, path, part, listener):
                sending.write(piece)
            sending.finish()
    for part in one.record.parts:
        _compare(store, path, part, listener)
    for key, data in signed:
        try:
            store.put(key, data, if_absent=True)
        except KeyExists:
            if whole(store, key) != data:
                raise Unsound(f"{store.url}/{key} is there already and differs") from None


def _pieces(waiting: DirectoryStore, path: str, part: Part, listener: Listener) -> Iterator[bytes]:
    with _own_fault():
        yield from sealed_pieces(waiting, path, part, listener)


def _small(waiting: DirectoryStore, key: str) -> bytes:
    """Empty where it is not there: not every backup is signed."""
    with _own_fault():
        try:
            return whole(waiting, key)
        except KeyMissing:
            return b""


@contextmanager
def _own_fault() -> Iterator[None]:
    """An error of this node's disk must not pass for one of the store, which is why it comes out as Unsound."""
    try:
        yield
    except StoreFailed as failed:
        raise Unsound(failed.what, failed.hint) from failed


def _compare(store: Store, path: str, part: Part, listener: Listener) -> None:
    try:
        for _ in sealed_pieces(store, path, part, listener):
            pass
    except Unsound as differs:
        raise StoreDamages(f"read back from the store, a spooled backup differs: {differs.what}") from differs


def bound(waiting: DirectoryStore, cluster: str, keep: int) -> tuple[str, ...]:
    """Drops what is more than `keep`: the oldest unverified first, then the oldest; never the newest. Their ids."""
    newest_first = list(inventory.read(waiting, cluster=cluster).backups)
    spare = newest_first[1:]
    order = sorted(spare, key=lambda one: (one.good, one.record.taken_at))
    drop = order[: max(len(newest_first) - max(keep, 1), 0)]
    for one in drop:
        inventory.remove(waiting, [stored.key for stored in waiting.list(f"{one.record.path}/")])
    return tuple(one.id for one in drop)
