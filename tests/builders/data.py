"""Facts of a made-up data directory, for checks that weigh etcd's data: no file is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drtool.checks import Case
from manifests.node import Node
from snapshots.cluster import Cluster, Member
from snapshots.contents import Contents, Sealed
from snapshots.facts import Database, DataDirectory
from snapshots.walcheck import LogFacts

CP1 = Member(0xC1, "cp-1", ("https://192.0.2.111:2380",), ("https://192.0.2.111:2379",))
CP2 = Member(0xC2, "cp-2", ("https://192.0.2.112:2380",), ("https://192.0.2.112:2379",))
CP3 = Member(0xC3, "cp-3", ("https://192.0.2.113:2380",), ("https://192.0.2.113:2379",))
CLUSTER = Cluster((CP1,), (), (), 4, "3.7.0", "3.7.0", 300, 2, (CP1.id,), False, 0, "")
DATABASE = Database("/var/lib/etcd/member/snap/db", 16_801_792, 319_488, checked=True, free=8192, revision=267)
LOG = LogFacts(
    ("0-0.wal",), member_id=CP1.id, cluster_id=0xABC, last=300, commit=300, segment="0-0.wal", offset=258_392
)
DATA = DataDirectory("/var/lib/etcd", True, True, ("member",), wal_path="/var/lib/etcd/member/wal")


def data(
    *members: Member, nodes: tuple[str, ...] = (), stored: tuple[Sealed, ...] = (), **changes: Any
) -> DataDirectory:
    """A member's data; `changes` go to whichever part has a field of that name."""
    parts: dict[str, Any] = {}
    contents = Contents(nodes=nodes, stored=stored, **_of(Contents, changes))
    cluster = replace(CLUSTER, members=members or (CP1,), **_of(Cluster, changes))
    parts["_database"] = replace(DATABASE, _cluster=cluster, _contents=contents, **_of(Database, changes))
    parts["_log"] = replace(LOG, **_of(LogFacts, changes))
    return replace(DATA, **parts, **_of(DataDirectory, changes))


def _of(kind: Any, changes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if name in kind.__dataclass_fields__}


def case(node: Node, stored: DataDirectory | None = None, **changes: Any) -> Case:
    return Case(node, stored=stored or data(), **changes)
