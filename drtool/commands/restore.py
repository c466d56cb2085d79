"""Restores a snapshot file into a data directory; nothing else of a node is touched."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from drtool.core.errors import UsageError
from drtool.core.events import Listener, silent
from snapshots import restore as restoring
from snapshots import versions
from snapshots.membership import (
    DEFAULT_NAME,
    DEFAULT_PEER_URL,
    NewCluster,
    NewMember,
    new_cluster,
    parse_initial_cluster,
)
from snapshots.restore import DEFAULT_BUMP, Restoration, Restored, Source


@dataclass(frozen=True, slots=True)
class Wanted:
    """A restore as a person asks for it; `restoration` checks it and fills in what etcdutl would.

    An empty `initial_cluster` is the one member `name` with `peer_urls`; an empty `token` is a new random one.
    """

    name: str = ""
    initial_cluster: str = ""
    peer_urls: str = ""
    token: str = ""
    bump: int = DEFAULT_BUMP
    mark_compacted: bool = True
    target_version: str = ""
    clear_alarms: bool = False
    disable_auth: bool = False
    check_hash: bool = True
    committed_only: bool = False


def restoration(wanted: Wanted) -> Restoration:
    """Raises UsageError for a cluster that etcd would refuse."""
    cluster = _cluster(wanted)
    name = wanted.name or (cluster.members[0].name if len(cluster.members) == 1 else "")
    if not name:
        names = ", ".join(one.name for one in cluster.members)
        raise UsageError(f"which member's directory? The cluster has {names}", "give --name")
    given = tuple(wanted.peer_urls.split(",")) if wanted.peer_urls else ()
    if given and set(given) != set(cluster.member(name).peer_urls):
        raise UsageError(
            f"--initial-advertise-peer-urls {wanted.peer_urls} is not what --initial-cluster has for {name}: "
            f"{','.join(cluster.member(name).peer_urls)}"
        )
    return Restoration(
        cluster=cluster,
        name=name,
        bump=wanted.bump,
        mark_compacted=wanted.mark_compacted,
        target=versions.parse(wanted.target_version) if wanted.target_version else None,
        clear_alarms=wanted.clear_alarms,
        disable_auth=wanted.disable_auth,
        check_hash=wanted.check_hash,
        committed_only=wanted.committed_only,
    )


def restore(source: Source, target: Path, wanted: Wanted, listener: Listener = silent) -> Restored:
    """`source`: a snapshot file, a stopped member's directory, or a snapshot's bytes as they come (a stored backup)."""
    return restoring.restore(source, target, restoration(wanted), listener)


def _cluster(wanted: Wanted) -> NewCluster:
    if wanted.initial_cluster:
        members = parse_initial_cluster(wanted.initial_cluster)
    else:
        members = (NewMember(wanted.name or DEFAULT_NAME, tuple((wanted.peer_urls or DEFAULT_PEER_URL).split(","))),)
    if not wanted.token and len(members) > 1:
        raise UsageError(
            "the members of one cluster need the same token", "give each restore the same --initial-cluster-token"
        )
    return new_cluster(members, wanted.token or f"drtool-{secrets.token_hex(8)}")
