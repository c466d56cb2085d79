"""The v2 store that a .snap file carries: keys in it that are not etcd's own.

etcd 3.6 and newer refuse to start where the store holds more than members and the cluster version: anything below the
root but /0 (membership) and /2 (permissions) that has children (server/etcdserver/api/membership/storev2.go,
IsMetaStoreOnly).
"""

from __future__ import annotations

import json
from typing import Any

from snapshots import wire

LARGEST = 16 << 20
OWN = ("/0", "/2")


def foreign(snap: bytes) -> tuple[str, ...]:
    """Paths of foreign keys, at most twenty; none where the file is no .snap with a v2 store (3.7 writes none)."""
    try:
        outer = dict(wire.fields(snap))
        inner = dict(wire.fields(wire.blob(outer.get(2, b""))))
        root = json.loads(wire.blob(inner.get(1, b"")) or b"{}").get("Root") or {}
        found: list[str] = []
        for name, node in sorted((root.get("Children") or {}).items()):
            if f"/{name}" not in OWN and node.get("Children"):
                _collect(node, found)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ()
    return tuple(found[:20])


def _collect(node: dict[str, Any], found: list[str]) -> None:
    children = node.get("Children")
    if children is None:
        found.append(str(node.get("Path", "")).removeprefix("/1"))
        return
    for child in children.values():
        if len(found) < 20:
            _collect(child, found)
