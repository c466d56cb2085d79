"""The plan after this node's address changed."""

from __future__ import annotations

from drtool.commands.carrying import plan_of
from drtool.core.check import EvidenceMissing
from drtool.core.errors import CannotTell, DrtoolError
from drtool.core.plan import Plan
from drtool.host.machine import Host
from drtool.host.root import Root
from drtool.plans import site
from drtool.plans.readdress import Peer, known_peers, readdress
from manifests.identity import cluster_name
from manifests.node import Node, read
from snapshots import cluster, mvcc


def plan(root: Root, to: str) -> Plan[Host]:
    """Raises UsageError where the new address is not clear, CannotTell where the node is no control plane."""
    node = read(root)
    try:
        draft = readdress(node, to, known_peers(node, members(root, node)))
    except EvidenceMissing as gap:
        raise CannotTell(f"the node cannot be read well enough for a plan: {gap}") from gap
    return plan_of(draft, cluster_name(node))


def members(root: Root, node: Node) -> tuple[Peer, ...]:
    """etcd's members from its own db; none where it cannot be read (a running etcd may tear it under our eyes)."""
    etcd = site.present(node, "etcd")
    if etcd is None:
        return ()
    try:
        with mvcc.opened(root.locate(f"{site.data_dir(etcd)}/member/snap/db")) as keyspace:
            found = cluster.members(keyspace)
    except (OSError, DrtoolError):
        return ()
    return tuple(Peer(one.name, one.peer_urls, one.client_urls) for one in found if one.peer_urls)
