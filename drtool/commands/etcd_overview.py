"""What is known of this node's etcd: from its files, and from the running server where it answered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.commands.check import data
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.host.root import Root
from manifests.live import EtcdAnswer
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
    newest = max((answer.raft_index for answer in state.status), default=0)
    for answer in state.status:
        yield Fact("server", answer.endpoint, answer.error or ", ".join(_said(answer, newest)), answer.endpoint)


def _said(answer: EtcdAnswer, newest: int) -> Iterator[str]:
    """`newest` is the highest raft index of all members."""
    if answer.leader and answer.leader == answer.member:
        yield "leader"
    elif not answer.leader:
        yield "no leader"
    yield f"db {_mebibytes(answer.db_size)}, {_mebibytes(answer.in_use)} in use"
    behind = newest - answer.raft_index
    yield f"raft index {answer.raft_index}" + (f" ({behind} behind)" if behind else "")
    if answer.seconds is not None:
        yield f"answered in {1000 * answer.seconds:.0f} ms"
    yield f"etcd {answer.version}"
    yield from answer.errors


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"


def _member(name: str, urls: tuple[str, ...], learner: bool, source: str) -> Fact:
    return Fact("member", name or "(never started)", " ".join(urls) + (", learner" if learner else ""), source)


def _files(stored: DataDirectory) -> Iterator[Fact]:
    try:
        database = stored.database
    except (EvidenceMissing, NotApplicable) as gap:
        yield Fact("db", "db", f"not known: {gap}", stored.path)
        return
    size = _mebibytes(database.size)
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
