"""A node that is set up for backups must have a recent one that was verified.

`drtool backup` leaves a record of its last verified backup on the node. None, or an old one, means that the timer does
not run, the store cannot be reached, or every attempt failed.

Fix: run `drtool backup` and read what it says; see to the timer.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
CONFIGURATION, RECORD = "/etc/drtool/config.yaml", "/var/lib/drtool/last-backup.json"
AGE = timedelta(hours=26)
FIX = Fix("drtool backup", "takes, verifies and stores a backup now")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def find(node: Node) -> Iterator[Finding]:
    if node.entry(CONFIGURATION).kind == "absent":
        raise NotApplicable("drtool is not configured on this node")
    limit = _limit(node)
    taken = _taken(node)
    if taken is None:
        yield Finding("No verified backup of this node is recorded", (Evidence(RECORD, None, "absent"),), fix=FIX)
    elif node.at - taken > limit:
        yield Finding(
            f"The last verified backup is of {taken:%Y-%m-%d %H:%M} UTC, {_age(node.at - taken)} ago",
            (Evidence(RECORD, None, f"{taken.isoformat()}"),),
            fix=FIX,
        )


def _limit(node: Node) -> timedelta:
    """`schedule.stale` of the configuration, "26h", which is also what it is where none is set."""
    told = str(node.document(CONFIGURATION).get("schedule", "stale", default=""))
    match = re.fullmatch(r"(\d+)([smhdw])", told.strip())
    return timedelta(seconds=int(match[1]) * UNITS[match[2]]) if match else AGE


def _taken(node: Node) -> datetime | None:
    """The newest time in the record, whatever else it holds."""
    text = (node.entry(RECORD).data or b"").decode("utf-8", "replace")
    try:
        values = json.loads(text)
    except ValueError:
        return None
    return max(_times(values), default=None)


def _times(values: object) -> Iterator[datetime]:
    for value in values.values() if isinstance(values, dict) else ():
        if isinstance(value, dict):
            yield from _times(value)
        elif isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                continue
            yield moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _age(delta: timedelta) -> str:
    hours = int(delta.total_seconds() // 3600)
    return f"{hours // 24} days" if hours >= 48 else f"{hours} hours"
