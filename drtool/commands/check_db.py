"""Judges a snapshot or a raw db alone: the checks that need no node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import snapshots.checks
from drtool.commands.check import verdict_as_data
from drtool.core.causes import Verdict, judge
from drtool.core.check import Check, load, run_one
from drtool.core.errors import NotFound, Unsound
from drtool.core.report import Outcome, Status
from snapshots import mvcc
from snapshots.facts import Database, database
from snapshots.registry.cluster import Cluster
from snapshots.registry.objects import Registry


@dataclass(frozen=True)
class DbReport:
    database: Database
    outcomes: tuple[Outcome, ...]
    verdict: Verdict


def check_db(path: Path) -> DbReport:
    """However large the file is, all of it is gone through, its checksum included. Raises NotFound, Unsound."""
    try:
        if path.exists() and not path.is_file():
            raise Unsound(f"{path} is no regular file", "give a snapshot or a member's snap/db")
        found = database(path, str(path), deep=path.stat().st_size, trailer=True)
    except FileNotFoundError as wrong:
        raise NotFound(f"{path}: {wrong.strerror}", "give a snapshot or a member's snap/db") from wrong
    checks = load(snapshots.checks)
    outcomes = tuple(_outcomes(checks, path, found))
    return DbReport(found, outcomes, judge(outcomes, checks))


def _outcomes(checks: tuple[Check, ...], path: Path, found: Database) -> list[Outcome]:
    over_db = [check for check in checks if check.folder == "etcd"]
    over_objects = [check for check in checks if check.folder != "etcd"]
    outcomes = [run_one(check, found) for check in over_db]
    if found.damage:
        reason = f"{found.path}: {found.damage}"
        return outcomes + [Outcome(check.id, Status.UNKNOWN, reason=reason) for check in over_objects]
    with mvcc.opened(path) as keyspace:
        cluster = Cluster(Registry(keyspace.index(), str(path)))
        return outcomes + [run_one(check, cluster) for check in over_objects]


def as_data(report: DbReport) -> dict[str, Any]:
    """Shaped as `drtool check` prints a node, with `db` in the place of `node` and `at`."""
    return {
        "schemaVersion": 1,
        "db": {
            "path": report.database.path,
            "size": report.database.size,
            "used": report.database.used,
            "revision": report.database.revision,
        },
        **verdict_as_data(report.verdict, report.outcomes),
    }
