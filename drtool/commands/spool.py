"""Sealed backups that wait on this node while the store is down: sent in order, bounded, the newest never dropped."""

from __future__ import annotations

from drtool.core.errors import Unsound
from drtool.core.events import Listener, silent
from snapshots import inventory
from snapshots.catalog import RECORD, SIGNATURE, Backup, Part
from snapshots.stores.directory import DirectoryStore
from snapshots.stores.store import KeyExists, KeyMissing, Store, whole
from snapshots.take import StoreDamages
from snapshots.transfer import Sending, sealed_pieces


def send(waiting: DirectoryStore, store: Store, cluster: str, listener: Listener = silent) -> tuple[str, ...]:
    """Oldest first; each is read back and compared before its record, and leaves the spool after it.

    Raises what the store raises; what was not sent stays.
    """
    sent = []
    for one in reversed(inventory.read(waiting, cluster=cluster).backups):
        _send(waiting, store, one, listener)
        inventory.remove(waiting, [stored.key for stored in waiting.list(f"{one.record.path}/")])
        sent.append(one.id)
    return tuple(sent)


def _send(waiting: DirectoryStore, store: Store, one: Backup, listener: Listener) -> None:
    path = one.record.path
    for part in one.record.parts:
        with Sending(store, f"{path}/{part.name}") as sending:
            for piece in sealed_pieces(waiting, path, part, listener):
                sending.write(piece)
            sending.finish()
    for part in one.record.parts:
        _compare(store, path, part, listener)
    for name in (SIGNATURE, RECORD):
        key = f"{path}/{name}"
        try:
            data = whole(waiting, key)
        except KeyMissing:
            continue  # not signed
        try:
            store.put(key, data, if_absent=True)
        except KeyExists:
            if whole(store, key) != data:
                raise


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
