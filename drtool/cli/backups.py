"""`drtool backups`"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from drtool.cli._output import columns, emit, output_option
from drtool.cli._progress import size
from drtool.cli._store import configured, store_options
from drtool.config import Seconds, seconds

if TYPE_CHECKING:
    from snapshots.catalog import Backup, Report
    from snapshots.inventory import Inventory

STALE = 4


class Duration(click.ParamType[Seconds]):
    name = "AGE"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Seconds:
        try:
            return seconds(str(value))
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


@click.command(epilog="Example: drtool backups --stale 26h")
@store_options
@click.option("--cluster", default="", metavar="ID", help="Only this cluster's backups.")
@click.option("--stale", type=Duration(), help="Exit 4 where a cluster's newest verified backup is older than this.")
@output_option
def command(cluster: str, stale: Seconds | None, output: str, **options: Any) -> int:
    """List what the store holds, newest first, with what has been verified and drilled."""
    config = configured(options)
    from drtool.commands.fetch import shelf

    held = shelf(config)
    found = held.inventory(cluster)
    for path, wrong in found.broken:
        click.echo(f"drtool: {path} cannot be believed: {wrong}", err=True)
    for one in found.backups:
        if one.misdated:
            click.echo(f"drtool: {one.id} is dated later than the store got it, so `latest` passes it over", err=True)
    late = _late(found, datetime.now(UTC), float(stale)) if stale is not None else []
    emit(_data(found, held.store.url, late), output, lambda: _table(found))
    for line in late:
        click.echo(f"drtool: {line}", err=True)
    return STALE if late else 0


def _late(found: Inventory, now: datetime, limit: float) -> list[str]:
    """Of each cluster in the store, and where there is none at all. What is dated in the future does not count."""
    from snapshots.catalog import ahead

    newest: dict[str, Backup | None] = {one.record.cluster_id: None for one in found.backups}
    for one in found.backups:
        if one.good and not ahead(one, now) and newest[one.record.cluster_id] is None:
            newest[one.record.cluster_id] = one
    late = [] if newest else ["stale: the store holds no backup"]
    for cluster, last in newest.items():
        if last is None:
            late.append(f"stale: no verified backup of cluster {cluster}")
        elif (age := (now - last.record.taken_at).total_seconds()) > limit:
            late.append(f"stale: the newest verified backup of cluster {cluster} is {age / 3600:.1f} h old")
    return late


def _table(found: Inventory) -> str:
    if not found.backups:
        return "no backups"
    rows = [
        (
            one.id,
            one.record.cluster_id,
            one.record.node,
            str(one.record.revision),
            str(one.record.keys),
            size(one.size),
            _proof(one),
            _told(one.last("drill")),
        )
        for one in found.backups
    ]
    return columns(("BACKUP", "CLUSTER", "NODE", "REVISION", "KEYS", "SIZE", "VERIFIED", "DRILLED"), rows)


def _proof(one: Backup) -> str:
    """A verification that went well says nothing beside one that looked deeper and found it bad."""
    last = one.last("verify")
    if one.verdict is not None and not one.good and one.verdict.kind == "verify":
        last = one.verdict
    state = _told(last) if last else "read back" if one.record.verified else "NO"
    return state + (", incomplete" if one.record.incomplete else "") + (", signed" if one.signed else "")


def _told(report: Report | None) -> str:
    return "-" if report is None else f"{report.at:%Y-%m-%d %H:%M} {'good' if report.good else 'BAD'}"


def _data(found: Inventory, url: str, late: list[str]) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "store": url,
        "backups": [
            {
                **msgspec.json.decode(msgspec.json.encode(one.record)),
                "good": one.good,
                "signed": one.signed,
                "storedSize": one.size,
                "reports": [{"kind": r.kind, "at": r.at.isoformat(), "good": r.good} for r in one.reports],
            }
            for one in found.backups
        ],
        "broken": [{"path": path, "problem": wrong.what} for path, wrong in found.broken],
        "unfinished": [orphan.path for orphan in found.orphans],
        "stale": late,
    }
