"""Applies the retention rules: never on a listing that failed or came back empty, never the last good backup."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from drtool.commands.fetch import Shelf
from drtool.config import Config, Retention
from drtool.core.errors import NotFound
from snapshots import inventory, lock
from snapshots.catalog import Backup, Decision, Record, Rules, retain
from snapshots.lock import Lease
from snapshots.stores.store import Store, StoreDenied, StoreFailed, StoreHolds


@dataclass(frozen=True, slots=True)
class Pruned:
    """`decisions` by cluster id; `held` are backups that the store would not let go, with its reason."""

    decisions: Mapping[str, Decision]
    removed: tuple[Backup, ...] = ()
    held: tuple[tuple[Backup, str], ...] = ()
    broken: tuple[str, ...] = field(default=())


def plan(shelf: Shelf, config: Config, cluster: str = "", now: datetime | None = None) -> Pruned:
    """What a run would do now. Raises NotFound where the listing is empty, and what the store raises."""
    found = shelf.inventory(cluster)
    if not found.backups:
        raise NotFound(f"{shelf.store.url} lists no backup: nothing is removed", "is it the right store and prefix?")
    clusters = dict.fromkeys(one.record.cluster_id for one in found.backups)
    decisions = {
        name: retain(
            (one for one in found.backups if one.record.cluster_id == name),
            rules(config.retention),
            now or datetime.now(UTC),
        )
        for name in clusters
    }
    return Pruned(decisions, broken=tuple(path for path, _ in found.broken))


def carry_out(shelf: Shelf, planned: Pruned, config: Config) -> Pruned:
    """Removes what was planned, cluster by cluster, holding each one's lock. Raises Locked."""
    removed: list[Backup] = []
    held: list[tuple[Backup, str]] = []
    limit = timedelta(seconds=float(config.timeouts.total))
    for cluster, decision in planned.decisions.items():
        if decision.drop:
            with lock.held(shelf.store, cluster, lock.owner(socket.gethostname(), (), limit)) as lease:
                _remove(shelf.store, decision, lease, removed, held)
    return Pruned(planned.decisions, tuple(removed), tuple(held), planned.broken)


def after_backup(
    shelf: Shelf, cluster: str, config: Config, record: Record, lease: Lease
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids removed, and warnings. No failure is fatal here.

    Nothing goes after a backup that was not verified, nor where no rules are configured: the store's other users may
    have theirs.
    """
    removed: list[Backup] = []
    held: list[tuple[Backup, str]] = []
    warnings: tuple[str, ...] = ()
    if record.verified is None or not config.retains:
        return (), ()
    try:
        _remove(shelf.store, plan(shelf, config, cluster).decisions.get(cluster, Decision()), lease, removed, held)
    except (StoreFailed, NotFound) as failed:
        warnings = (f"retention was not applied: {failed.what}",)
    warnings += tuple(f"{one.id} could not be removed: {why}" for one, why in held)
    return tuple(one.id for one in removed), warnings


def _remove(
    store: Store, decision: Decision, lease: Lease, removed: list[Backup], held: list[tuple[Backup, str]]
) -> None:
    """Oldest first. What the store holds fast is reported and left."""
    if decision.drop:
        lease.removing(tuple(one.id for one in decision.drop))
    for one in decision.drop:
        try:
            inventory.remove(store, [stored.key for stored in store.list(f"{one.record.path}/")])
            removed.append(one)
        except (StoreHolds, StoreDenied) as refused:
            held.append((one, refused.what))


def rules(given: Retention) -> Rules:
    return Rules(
        given.keep_last,
        given.hourly,
        given.daily,
        given.weekly,
        given.monthly,
        given.minimum_count,
        timedelta(seconds=float(given.minimum_age)),
    )
