"""What the etcd screen shows: the running server's own words beside what its files hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from drtool.commands.asking import record
from drtool.commands.etcd_overview import Fact, etcd_overview
from drtool.host.root import Root
from manifests import live
from manifests.capture import capture
from manifests.node import seen
from tests.builders.tree import NOW, laid

MIB = 1 << 20


def overview(place: Path, told: dict[str, Any] | None) -> tuple[Fact, ...]:
    tree = laid(place)
    said = {live.ETCD: told} if told is not None else {}
    missing = {} if told is not None else {live.ETCD: "etcd does not answer: Connection refused"}
    files = {**said, "/drtool/capture.json": record(missing, NOW)}
    root = Root(tree.root)
    return etcd_overview(
        root, seen(capture(root, {path: json.dumps(data).encode() for path, data in files.items()}), NOW)
    )


def member(number: int, raft_index: int, **more: Any) -> dict[str, Any]:
    """protojson writes 64-bit numbers as text."""
    return {
        "endpoint": f"https://192.0.2.11{number}:2379",
        "header": {"member_id": str(number)},
        "version": "3.6.8",
        "dbSize": str(30 * MIB),
        "dbSizeInUse": str(12 * MIB),
        "leader": "1",
        "raftIndex": str(raft_index),
        "error": "",
        **more,
    }


def test_members_are_told_apart_by_size_index_and_time(tmp_path: Path) -> None:
    told = {
        "endpoint": "https://192.0.2.111:2379",
        "members": [
            {"ID": "1", "name": "cp-1", "peerURLs": ["https://192.0.2.111:2380"]},
            {"ID": "2", "isLearner": True},
        ],
        "alarms": [{"memberID": "2", "alarm": "NOSPACE"}],
        "status": [
            member(1, 4711, seconds=0.0034),
            member(2, 4700, errors=["etcdserver: no leader"]),
            {"endpoint": "https://192.0.2.113:2379", "error": "timed out"},
        ],
    }
    found = overview(tmp_path, told)
    assert [fact.value for fact in found if fact.group == "server"] == [
        "leader, db 30.0 MiB, 12.0 MiB in use, raft index 4711, answered in 3 ms, etcd 3.6.8",
        "db 30.0 MiB, 12.0 MiB in use, raft index 4700 (11 behind), etcd 3.6.8, etcdserver: no leader",
        "timed out",
    ]
    assert [(fact.what, fact.value) for fact in found if fact.group == "member"][:2] == [
        ("cp-1", "https://192.0.2.111:2380"),
        ("(never started)", ", learner"),
    ]
    assert [(fact.what, fact.value) for fact in found if fact.group == "alarm"] == [
        ("NOSPACE", "raised by 0000000000000002")
    ]


def test_why_a_server_is_not_known(tmp_path: Path) -> None:
    (server,) = [fact for fact in overview(tmp_path, None) if fact.group == "server"]
    assert server.value == "not known: etcd does not answer: Connection refused"
