"""etcd needs a disk that syncs in milliseconds; on a slow one leaders change and the API server times out.

A few slow lines while a node boots are normal. Many `slow fdatasync` and `apply request took too long` lines, a data
directory on a network file system or on a rotational disk are not. It becomes an outage where heartbeats are late
(`leader failed to send out heartbeat on time`) and the leader is lost again and again.

Fix: give /var/lib/etcd a local SSD of its own; stop what else writes to the disk.
"""

import re
from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import data_directory
from manifests.logs import Line
from manifests.node import Node

SEVERITY = Severity.WARNING
SLOW = re.compile(r"slow fdatasync|apply request took too long|took too long.*(?:read-only|expected-duration)")
LATE = re.compile(r"failed to send out heartbeat on time")
LOST = re.compile(r"lost leader|leader changed|raft\.node: \w+ lost leader|etcdserver: leader changed|no leader")
MANY, LATE_MANY, LOST_MANY = 20, 5, 3
NETWORK = ("nfs", "nfs4", "cifs", "fuse.glusterfs", "ceph", "fuse.ceph", "fuse.sshfs", "9p")


def find(node: Node) -> Iterator[Finding]:
    path = data_directory(node)
    yield from _network(node, path)
    lines = node.log("etcd")
    slow, late, lost = (_matching(lines, pattern) for pattern in (SLOW, LATE, LOST))
    if len(late) >= LATE_MANY and len(lost) >= LOST_MANY:
        yield Finding(
            f"etcd loses its leader over a slow disk: {len(late)} late heartbeats, {len(slow)} slow writes",
            (late[-1].evidence, lost[-1].evidence, *(line.evidence for line in slow[-1:])),
            severity=Severity.CRITICAL,
        )
    elif len(slow) >= MANY:
        yield Finding(f"etcd's disk is slow: {len(slow)} slow writes in its log", (slow[-1].evidence,))


def _matching(lines: tuple[Line, ...], pattern: re.Pattern[str]) -> list[Line]:
    return [line for line in lines if pattern.search(line.text)]


def _network(node: Node, path: str) -> Iterator[Finding]:
    best: tuple[str, str, Evidence] | None = None
    for match, evidence in node.find("/proc/mounts", r"^\S+ (\S+) (\S+) "):
        mount = match[1].rstrip("/")
        if f"{path}/".startswith(f"{mount}/") and (best is None or len(mount) >= len(best[0])):
            best = (mount, match[2], evidence)
    if best is not None and best[1] in NETWORK:
        yield Finding(f"{path} lies on a network file system ({best[1]}), which etcd is not made for", (best[2],))
