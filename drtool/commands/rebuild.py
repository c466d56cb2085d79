"""The plans after quorum loss on this node: become a cluster of one, or join one with an empty directory."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from drtool.commands.carrying import host
from drtool.core.check import EvidenceMissing
from drtool.core.errors import CannotTell, Refused
from drtool.core.plan import Plan
from drtool.host.machine import Host
from drtool.host.root import Root
from drtool.plans import site
from drtool.plans.rebuild import Standing, join, rebuild
from drtool.plans.restore import need_etcd
from manifests.identity import cluster_name
from manifests.node import Node, read
from snapshots import cluster, mvcc, survivors
from snapshots.survivors import Verdict


def plan(root: Root, directories: Sequence[Path]) -> Plan[Host]:
    """Raises Refused where another directory than this node's own has the newest data: then it is that node's turn."""
    node = read(root)
    own = root.locate(site.data_dir(need_etcd(node)))
    verdict = _compared([own, *(one for one in directories if one.resolve() != own)], own)
    if verdict.best is None:
        mine = next(one for one in verdict.survivors if one.directory == own)
        raise Refused(f"{own} cannot be rebuilt from: {mine.damage}", "restore a backup: drtool restore --node latest")
    if verdict.best.directory != own:
        name = verdict.best.name or str(verdict.best.directory)
        raise Refused(f"{verdict.best.directory} has newer data than this node", f"run this on the node of {name}")
    name = plan_name("rebuild")
    try:
        draft = rebuild(node, name, f"drtool-{secrets.token_hex(8)}", _given_up(own, need_etcd(node).value("name")))
    except EvidenceMissing as gap:
        raise CannotTell(f"the node cannot be read well enough for a plan: {gap}") from gap
    return Plan(name, draft.title, cluster_name(node), draft.steps, draft.by_hand)


def _compared(directories: Sequence[Path], own: Path) -> Verdict:
    """This node's own member may run: without a quorum nothing changes in it, and the plan stops it first."""
    found = survivors.compare(directories)
    return survivors.judge([replace(one, live=False) if one.directory == own else one for one in found.survivors])


def _given_up(own: Path, name: str) -> tuple[str, ...]:
    with mvcc.opened(own / "member/snap/db") as keyspace:
        return tuple(one.name or f"{one.id:x}" for one in cluster.members(keyspace) if one.name != name)


def plan_join(root: Root, url: str) -> Plan[Host]:
    """Asks the etcd at `url` for its members. Raises what the client raises."""
    node = read(root)
    name = plan_name("join")
    draft = join(node, name, url, _members(root, node, url))
    return Plan(name, draft.title, cluster_name(node), draft.steps, draft.by_hand)


def _members(root: Root, node: Node, url: str) -> tuple[Standing, ...]:
    access = site.etcd_access(node, url)
    found = access.ask(host(root, ""), lambda etcd: etcd.members())
    return tuple(Standing(f"{one.id:x}", one.name, one.peer_urls) for one in found)


def plan_name(kind: str) -> str:
    return site.plan_id(kind, datetime.now(UTC))
