"""Many clusters in one store: last backup, last drill, RPO against the target, and what to drill them all with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from string import Template
from typing import Any

from drtool.commands.fetch import Shelf
from drtool.core.errors import NotFound, UsageError
from snapshots.catalog import Backup, ahead


@dataclass(frozen=True, slots=True)
class Target:
    """How old the newest verified backup, and the last good drill, may be."""

    backup: timedelta
    drill: timedelta


@dataclass(frozen=True, slots=True)
class Standing:
    """One cluster of the store. `late` says in words what is behind its target."""

    cluster: str
    nodes: tuple[str, ...]
    backups: int
    newest: Backup | None
    drilled: datetime | None
    late: tuple[str, ...]


def fleet(held: Shelf, target: Target, now: datetime) -> tuple[Standing, ...]:
    """Every cluster, the one that is furthest behind first."""
    by_cluster: dict[str, list[Backup]] = {}
    for backup in held.inventory().backups:
        by_cluster.setdefault(backup.record.cluster_id, []).append(backup)
    found = [_standing(cluster, backups, target, now) for cluster, backups in by_cluster.items()]
    return tuple(sorted(found, key=lambda one: (-len(one.late), one.cluster)))


def _standing(cluster: str, backups: list[Backup], target: Target, now: datetime) -> Standing:
    good = [one for one in backups if one.good and not ahead(one, now)]
    newest = max(good, key=lambda one: one.record.taken_at, default=None)
    drills = [report.at for one in backups if (report := one.last("drill")) is not None and report.good]
    drilled = max(drills, default=None)
    late = []
    if newest is None:
        late.append("no verified backup")
    elif now - newest.record.taken_at > target.backup:
        late.append(f"newest verified backup is {_hours(now - newest.record.taken_at)} old")
    if drilled is None:
        late.append("never drilled")
    elif now - drilled > target.drill:
        late.append(f"last good drill is {_hours(now - drilled)} old")
    nodes = tuple(sorted({one.record.node for one in backups}))
    return Standing(cluster, nodes, len(backups), newest, drilled, tuple(late))


def _hours(age: timedelta) -> str:
    hours = age.total_seconds() / 3600
    return f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} d"


def job(standings: tuple[Standing, ...], image: str, namespace: str, parallel: int) -> str:
    """An Indexed Job that drills one cluster an index. Raises NotFound where there is no cluster to drill."""
    clusters = sorted(one.cluster for one in standings)
    if not clusters:
        raise NotFound("the store holds no cluster to drill")
    if not image or any(char.isspace() for char in image):
        raise UsageError(f"{image!r} is no image", "name an image with drtool, etcd and kube-apiserver in it")
    template = resources.files("drtool.commands").joinpath("fleet_job.yaml").read_text()
    lines = "\n".join(f"    {cluster}" for cluster in clusters)
    return Template(template).substitute(
        image=image,
        namespace=namespace,
        count=len(clusters),
        parallel=min(parallel, len(clusters)),
        clusters=lines,
    )


def as_data(found: tuple[Standing, ...], url: str) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "store": url,
        "clusters": [
            {
                "cluster": one.cluster,
                "nodes": list(one.nodes),
                "backups": one.backups,
                "newest": one.newest.id if one.newest else None,
                "newestAt": _utc(one.newest.record.taken_at) if one.newest else None,
                "lastGoodDrill": _utc(one.drilled) if one.drilled else None,
                "late": list(one.late),
            }
            for one in found
        ],
    }


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
