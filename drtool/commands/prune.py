"""Applies the retention rules: never on a listing that failed or came back empty, never the last good backup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from drtool.commands.fetch import Shelf
from drtool.config import Config, Retention
from drtool.core.errors import NotFound
from snapshots import inventory
from snapshots.catalog import Backup, Decision, Record, Rules, retain
from snapshots.stores.store import StoreDenied, StoreFailed, StoreHolds


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


def carry_out(shelf: Shelf, planned: Pruned) -> Pruned:
    """Removes what was planned, oldest first. What the store holds fast is reported and left."""
    removed, held = [], []
    for decision in planned.decisions.values():
        for one in decision.drop:
            try:
                inventory.remove(shelf.store, [stored.key for stored in shelf.store.list(f"{one.record.path}/")])
                removed.append(one)
            except (StoreHolds, StoreDenied) as refused:
                held.append((one, refused.what))
    return Pruned(planned.decisions, tuple(removed), tuple(held), planned.broken)


def after_backup(shelf: Shelf, cluster: str, config: Config, record: Record) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids removed, and warnings. Nothing goes after a backup that was not verified, and no failure is fatal here."""
    if record.verified is None:
        return (), ()
    try:
        done = carry_out(shelf, plan(shelf, config, cluster))
    except (StoreFailed, NotFound) as failed:
        return (), (f"retention was not applied: {failed.what}",)
    return tuple(one.id for one in done.removed), tuple(
        f"{one.id} could not be removed: {why}" for one, why in done.held
    )


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
