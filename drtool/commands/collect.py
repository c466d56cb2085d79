"""A bundle of one node's evidence: what `check --root` needs to judge it elsewhere, and no secret."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from drtool.commands.asking import record
from drtool.commands.capture import gather
from drtool.commands.check import ETCD_FACTS, data, judged_together
from drtool.commands.kept_outcomes import OUTCOMES
from drtool.commands.kept_outcomes import encode as encode_outcomes
from drtool.core.report import Outcome
from drtool.host.archive import pack
from drtool.host.patience import Patience
from drtool.host.root import Root
from drtool.host.writing import beside
from manifests.capture import Capture
from manifests.live import read_json
from manifests.node import Node, seen
from manifests.redaction import Redaction
from manifests.saving import files
from snapshots.kept import encode


@dataclass(frozen=True, slots=True)
class Collected:
    """`files` counts what the bundle holds, `unreadable` names what it could not have, with the reason."""

    path: Path
    size: int
    files: int
    unreadable: tuple[tuple[str, str], ...]


def collect(root: Root, to: Path | None = None, probe: bool = True) -> Collected:
    """Writes the bundle of the node below `root`, complete or not at all; `to` is its file, else one in this directory.

    What cannot be read, or hangs, is noted and the rest goes on. Raises OSError where the bundle cannot be written.
    """
    taken = gather(Root(root.directory, Patience()), probe)
    node = seen(taken)
    at = taken.at or datetime.now(UTC)
    said = read_json(taken.entry("/drtool/capture.json"))
    missing = said.get("missing") if isinstance(said, dict) else None
    kept = files(taken, record(missing if isinstance(missing, dict) else {}, at), _etcd(root, node))
    name = f"drtool-{_safe(node.name) or 'node'}-{at:%Y%m%dT%H%M%SZ}"
    path = to or Path(f"{name}.tar.gz")
    with beside(path) as file:
        pack(kept, name, at.timestamp(), file)
    gaps = tuple(_unreadable(taken)) + tuple((missing or {}).items() if isinstance(missing, dict) else ())
    return Collected(path, path.stat().st_size, len(kept), gaps)


def _etcd(root: Root, node: Node) -> dict[str, bytes]:
    """Etcd's db stays where it is; what checks read of it is kept, and what they found in it."""
    patience = Patience(seconds=30.0)
    facts = patience.spend(lambda: data(root, node), None)
    if facts is None:
        return {}
    nothing: tuple[Outcome, ...] = ()
    found = patience.spend(lambda: judged_together((root,), (node,))[0].outcomes, nothing)
    return {ETCD_FACTS: encode(facts, Redaction().text), OUTCOMES: encode_outcomes(found)}


def _unreadable(taken: Capture) -> list[tuple[str, str]]:
    """What is there and could not be read; that a file is absent is itself evidence."""
    return [
        (path, entry.error)
        for path, entry in sorted(taken.entries.items())
        if entry.error and entry.kind not in {"absent", "dangling"}
    ]


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "", name)[:60].lstrip(".-")
