"""Where a node's etcd keeps its data, and what its log says since it last started."""

from __future__ import annotations

import re

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence
from drtool.host.root import Entry
from manifests.live import EtcdState
from manifests.logs import Line
from manifests.node import Node
from manifests.pod import Component

DATA_DIR = "/var/lib/etcd"
SERVING = "ready to serve client requests"
STARTING = re.compile(r'"msg":"Running: "|etcdmain: etcd Version')


def data_directory(node: Node) -> str:
    """The data directory on the host: --data-dir as its volume maps it; kubeadm's own where there is no manifest."""
    etcd = node.components.get("etcd")
    return _on_host(etcd, etcd.value("data-dir", DATA_DIR)) if etcd else DATA_DIR


def wal_directory(node: Node) -> str:
    etcd = node.components.get("etcd")
    wal = etcd.value("wal-dir") if etcd else ""
    return _on_host(etcd, wal) if etcd and wal else f"{data_directory(node)}/member/wal"


def _on_host(etcd: Component, path: str) -> str:
    path = path.rstrip("/") or "/"
    return etcd.container.host_path(path) or path


def has_data(node: Node) -> bool:
    """Whether the data directory holds a member. EvidenceMissing where the tree has no such directory at all."""
    path = data_directory(node)
    entry = node.entry(path)
    if entry.error and entry.kind != "absent":
        raise EvidenceMissing(f"{path}: {entry.error}")
    listing = node.capture.listings.get(path)
    if listing is None:
        listing = _captured_names(node, path)
    if listing is None:
        raise EvidenceMissing(f"{path} is not in this tree")
    return "member" in listing


def _captured_names(node: Node, path: str) -> tuple[str, ...] | None:
    if node.entry(path).kind == "absent":
        return None
    prefix = f"{path}/"
    return tuple({p.removeprefix(prefix).split("/")[0] for p in node.capture.entries if p.startswith(prefix)})


def directory(node: Node) -> Entry:
    return node.entry(data_directory(node))


def recent_log(node: Node) -> tuple[Line, ...]:
    """etcd's log from its last start on: what an earlier run said may be repaired. EvidenceMissing where there is none.

    3.4 to 3.7 name their arguments or their version first.
    """
    lines = node.log("etcd")
    starts = [place for place, line in enumerate(lines) if STARTING.search(line.text)]
    first = starts[-1] if starts else 0
    return lines[first:]


def last_words(node: Node, pattern: str) -> Evidence | None:
    """A line with which etcd has ended since its last start: it outweighs a look at its data from outside.

    None where it came to serve after that, or where there is no log.
    """
    try:
        lines = recent_log(node)
    except EvidenceMissing:
        return None
    serving = max((place for place, line in enumerate(lines) if SERVING in line.text), default=-1)
    line = said(lines[serving + 1 :], pattern)
    return line.evidence if line else None


def said(lines: tuple[Line, ...], pattern: str) -> Line | None:
    """The last line that matches."""
    expression = re.compile(pattern)
    return next((line for line in reversed(lines) if expression.search(line.text)), None)


def asked(node: Node) -> EtcdState | None:
    """What the running etcd answered; None where it was not asked, or asked in vain."""
    try:
        return node.etcd_state
    except (EvidenceMissing, NotApplicable):
        return None
