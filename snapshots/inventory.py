"""Reads a store's backups: every record with its signature, later reports, and what no record speaks for."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from drtool.core.errors import CannotOpen, DrtoolError, Unsound
from snapshots import catalog
from snapshots.catalog import CLUSTER, ID, RECORD, SIGNATURE, Backup, Record, Report
from snapshots.stores.store import KeyMissing, Store, Stored, StoreDenied, StoreFailed, StoreMissing, whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

READERS = 8


@dataclass(frozen=True, slots=True)
class Orphan:
    """Objects of a backup that was never finished: no record. `newest` is when the last of them was written."""

    path: str
    keys: tuple[str, ...]
    newest: datetime


@dataclass(frozen=True, slots=True)
class Inventory:
    """`backups` newest first. `broken` has records that cannot be believed, with the reason; they are left alone."""

    backups: tuple[Backup, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    broken: tuple[tuple[str, DrtoolError], ...] = ()


def read(store: Store, trusted: Iterable[Ed25519PublicKey] = (), cluster: str = "") -> Inventory:
    """Everything, or one cluster. Raises what the store raises: a listing that failed is never a short one.

    One object that the store will not give, whatever its reason, hides no other backup; where it gives none for want of
    rights, that is raised.
    """
    keys = list(trusted)
    finished, unfinished = _listed(store, cluster)
    with ThreadPoolExecutor(READERS, thread_name_prefix="store") as readers:
        read_in = list(readers.map(lambda path: _backup(store, path, finished[path], keys), finished))
    backups = [one for one in read_in if isinstance(one, Backup)]
    broken = [one for one in read_in if isinstance(one, tuple)]
    denied = [wrong for _, wrong in broken if isinstance(wrong, StoreDenied)]
    if denied and not backups:
        raise denied[0]
    backups.sort(key=lambda one: (one.record.taken_at, one.id), reverse=True)
    return Inventory(tuple(backups), unfinished, tuple(broken))


def orphans(store: Store, cluster: str) -> tuple[Orphan, ...]:
    """As `read` finds them, from the listing alone."""
    return _listed(store, cluster)[1]


def _listed(store: Store, cluster: str) -> tuple[dict[str, list[Stored]], tuple[Orphan, ...]]:
    """The objects of each backup that has a record, by its path; and of those that have none."""
    held: dict[str, list[Stored]] = {}
    for stored in store.list(f"{cluster}/" if cluster else ""):
        parts = stored.key.split("/")
        if len(parts) == 3 and CLUSTER.fullmatch(parts[0]) and ID.fullmatch(parts[1]):
            held.setdefault(f"{parts[0]}/{parts[1]}", []).append(stored)
    finished = {path: found for path, found in held.items() if any(_name(one) == RECORD for one in found)}
    return finished, tuple(
        Orphan(path, tuple(one.key for one in found), max(one.modified for one in found))
        for path, found in held.items()
        if path not in finished
    )


def _backup(
    store: Store, path: str, found: list[Stored], trusted: list[Ed25519PublicKey]
) -> Backup | tuple[str, DrtoolError]:
    reports = sorted((report for one in found if (report := catalog.read_report(_name(one)))), key=lambda one: one.at)
    try:
        record, signed = read_record(store, path, trusted)
        sizes = {_name(one): one.size for one in found}
        for part in record.parts:
            if sizes.get(part.name) != part.sealed_size:
                is_now = f"{sizes[part.name]} bytes" if part.name in sizes else "gone"
                raise Unsound(
                    f"{path}/{part.name} is {is_now}, not {part.sealed_size} bytes",
                    "the store damaged or lost it: use another backup",
                )
        reports = _deepened(store, path, reports)
    except (CannotOpen, Unsound) as wrong:
        return path, wrong
    except StoreFailed as failed:
        if failed.transient or isinstance(failed, StoreMissing):
            raise
        return path, failed
    received = max(one.modified for one in found if _name(one) == RECORD)
    return Backup(record, tuple(reports), signed, sum(sizes.values()), received)


def _deepened(store: Store, path: str, reports: list[Report]) -> list[Report]:
    """With `opened` as their bodies say it, from the first bad one on: before that it decides nothing."""
    bad = next((at for at, report in enumerate(reports) if not report.good), len(reports))
    if not any(report.good for report in reports[bad:]):
        return reports
    return [*reports[:bad], *(replace(report, opened=_opened(store, path, report)) for report in reports[bad:])]


def _opened(store: Store, path: str, report: Report) -> bool:
    """Where the body does not tell, what keeps a bad report standing."""
    if report.kind != "verify":
        return report.opened
    try:
        body = whole(store, f"{path}/{catalog.report_name(report)}", 1 << 20)
        return msgspec.json.decode(body, type=_Looked).opened
    except (msgspec.MsgspecError, RecursionError):
        return not report.good
    except StoreFailed as failed:
        if failed.transient or isinstance(failed, StoreMissing):
            raise
        return not report.good


class _Looked(msgspec.Struct):
    """What `drtool verify` leaves, as far as it counts here."""

    opened: bool


def read_record(store: Store, path: str, trusted: Iterable[Ed25519PublicKey]) -> tuple[Record, bool]:
    """The record at `path`, and whether a trusted key signed it.

    With trusted keys, raises CannotOpen where none of them did. Raises Unsound, KeyMissing.
    """
    data = whole(store, f"{path}/{RECORD}", 4 << 20)
    keys = list(trusted)
    if keys:
        from snapshots import signing

        signing.verify(data, _signature(store, path), keys, f"{store.url}/{path}/{RECORD}")
    return catalog.decode(data, path), bool(keys)


def _signature(store: Store, path: str) -> bytes | None:
    try:
        return whole(store, f"{path}/{SIGNATURE}", 1 << 10)
    except KeyMissing:
        return None
    except StoreFailed as failed:
        if failed.transient:
            raise
        return b""


def report(store: Store, record: Record, found: Report, body: bytes) -> None:
    """Leaves beside a backup what a later look at it came to."""
    store.put(f"{record.path}/{catalog.report_name(found)}", body)


def remove(store: Store, keys: Iterable[str]) -> None:
    """Deletes a backup: its record first, so that it is no backup from the first moment on."""
    ordered = sorted(keys, key=lambda key: (not key.endswith(f"/{RECORD}"), key))
    for key in ordered:
        store.delete(key)


def forget(store: Store, orphan: Orphan) -> None:
    """Deletes what an unfinished backup left, once the store has said itself that there is no record."""
    try:
        store.size(f"{orphan.path}/{RECORD}")
    except KeyMissing:
        remove(store, orphan.keys)


def _name(stored: Stored) -> str:
    return stored.key.rpartition("/")[2]
