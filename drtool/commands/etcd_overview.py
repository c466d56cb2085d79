"""What is known of this node's etcd: from its files, and from the running server where it answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.commands.check import data
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.host.root import Root
from manifests.node import Node
from snapshots.facts import DataDirectory


@dataclass(frozen=True, slots=True)
class Fact:
    """`group` is member, alarm, db, log or server; `source` says where it was read."""

    group: str
    what: str
    value: str
    source: str


def etcd_overview(root: Root, node: Node) -> tuple[Fact, ...]:
    """NotApplicable where this kind of node runs no etcd."""
    if "etcd" not in node.layout.programs:
        raise NotApplicable(f"a {node.layout} node runs no etcd of its own")
    stored = data(root, node)
    return (*_server(node), *(_files(stored) if stored is not None else ()))


def _server(node: Node) -> Iterator[Fact]:
    """Where it answered; else why nothing is known of it."""
    try:
        state = node.etcd_state
    except (EvidenceMissing, NotApplicable) as gap:
        yield Fact("server", "running server", f"not known: {gap}", "")
        return
    for member in state.members:
        yield _member(member.name, member.peer_urls, member.learner, state.endpoint)
    for number, alarm in state.alarms:
        yield Fact("alarm", alarm, f"raised by {number:016x}", state.endpoint)
    for answer in state.status:
        yield Fact("server", answer.endpoint, answer.evidence.text, answer.endpoint)


def _member(name: str, urls: tuple[str, ...], learner: bool, source: str) -> Fact:
    return Fact("member", name or "(never started)", " ".join(urls) + (", learner" if learner else ""), source)


def _files(stored: DataDirectory) -> Iterator[Fact]:
    try:
        database = stored.database
    except (EvidenceMissing, NotApplicable) as gap:
        yield Fact("db", "db", f"not known: {gap}", stored.path)
        return
    size = f"{database.size / (1 << 20):.1f} MiB"
    free = f", {100 * database.free // max(1, database.used)} % of it free" if database.free is not None else ""
    yield Fact("db", "size", size + free, database.path)
    yield Fact(
        "db", "structure", database.damage or ("sound" if database.checked else "not gone through"), database.path
    )
    yield Fact("db", "revision", f"{database.revision}, compacted at {database.compacted}", database.path)
    try:
        cluster = database.cluster
    except (EvidenceMissing, NotApplicable) as gap:
        yield Fact("db", "cluster", f"not known: {gap}", database.path)
    else:
        yield Fact("db", "raft index", f"{cluster.consistent_index} in term {cluster.term}", database.path)
        yield Fact("db", "versions", f"cluster {cluster.version or '-'}, storage {cluster.storage_version or '-'}", "")
        for member in cluster.members:
            learner = ", learner" if member.learner else ""
            yield Fact(
                "member", member.name or "(never started)", f"{' '.join(member.peer_urls)}{learner}", database.path
            )
        for alarm in cluster.alarms:
            yield Fact("alarm", alarm.kind, f"raised by {alarm.member:016x}", database.path)
    yield from _log(stored)


def _log(stored: DataDirectory) -> Iterator[Fact]:
    try:
        log = stored.log
    except (EvidenceMissing, NotApplicable) as gap:
        yield Fact("log", "WAL", f"not known: {gap}", stored.path)
        return
    yield Fact(
        "log", "WAL", f"{len(log.segments)} segments, entries up to {log.last}, committed {log.commit}", stored.path
    )
    yield Fact("log", "WAL damage", log.fault or "none seen", log.segment)
