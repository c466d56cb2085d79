"""The .snap file of a restored member: membership in the v2 store, which etcd 3.4 and 3.5 read it from.

snappb.Snapshot {1 crc32c of data, 2 data = raftpb.Snapshot {1 v2 store as JSON, 2 metadata {1 ConfState, 2 index, 3
term}}} (server/etcdserver/api/{snap,v2store}). 3.6 and newer take members from the db.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from snapshots import wire
from snapshots.cluster import Member, go_json
from snapshots.crc import crc32c
from snapshots.membership import conf_state

NEVER = "0001-01-01T00:00:00Z"
EVENTS = 1000
"""The v2 store's event queue, empty slots included."""
STATS = (
    "getsSuccess", "getsFail", "setsSuccess", "setsFail", "deleteSuccess", "deleteFail", "updateSuccess",
    "updateFail", "createSuccess", "createFail", "compareAndSwapSuccess", "compareAndSwapFail",
    "compareAndDeleteSuccess", "compareAndDeleteFail", "expireCount", "watchers",
)  # fmt: skip


def name(index: int, term: int) -> str:
    return f"{term:016x}-{index:016x}.snap"


def encode(members: Sequence[Member], term: int) -> bytes:
    """The file for a cluster whose raft log so far adds these members, in this order."""
    index = len(members)
    metadata = wire.field(1, conf_state(members)) + wire.field(2, index) + wire.field(3, term)
    data = wire.field(1, go_json(_store(members))) + wire.field(2, metadata)
    return wire.field(1, crc32c(data)) + wire.field(2, data)


def _store(members: Sequence[Member]) -> dict[str, Any]:
    places = [f"/0/members/{one.id:x}" for one in members]
    values = [go_json({"peerURLs": list(one.peer_urls)}).decode() for one in members]
    children = {
        place.rpartition("/")[2]: _node(
            place, at, {"raftAttributes": _node(f"{place}/raftAttributes", at, None, value)}
        )
        for at, (place, value) in enumerate(zip(places, values, strict=True), 1)
    }
    events = [
        {
            "action": "create",
            "node": {"key": f"{place}/raftAttributes", "value": value, "modifiedIndex": at, "createdIndex": at},
        }
        for at, (place, value) in enumerate(zip(places, values, strict=True), 1)
    ]
    count = len(members)
    queue = {"Events": [*events, *[None] * (EVENTS - count)], "Size": count, "Front": 0, "Back": count}
    return {
        "Root": _node("/", 0, {"0": _node("/0", 0, {"members": _node("/0/members", 1, dict(sorted(children.items())))}),
                               "1": _node("/1", 0, {})}),
        "WatcherHub": {
            "EventHistory": {"Queue": {**queue, "Capacity": EVENTS}, "StartIndex": 1, "LastIndex": count}
        },
        "CurrentIndex": count,
        "Stats": {name: count if name == "createSuccess" else 0 for name in STATS},
        "CurrentVersion": 2,
    }  # fmt: skip


def _node(path: str, index: int, children: dict[str, Any] | None, value: str = "") -> dict[str, Any]:
    return {
        "Path": path,
        "CreatedIndex": index,
        "ModifiedIndex": index,
        "ExpireTime": NEVER,
        "Value": value,
        "Children": children,
    }
