"""How full the file systems are that a control-plane node writes to, and who said that one was full."""

from __future__ import annotations

import re

from drtool.core.check import EvidenceMissing
from manifests.live import Filesystem
from manifests.logs import Line
from manifests.messages import EVERYONE, said
from manifests.node import Node
from manifests.quantity import quantity

WRITTEN = (
    "/etc/kubernetes",
    "/var/lib/etcd",
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/log",
)
FULL = r"[Nn]o space left on device|ENOSPC"
WATCH = re.compile(r"(?i)inotify|fsnotify|watch")  # the same words about the kernel's watch limits


def relevant(node: Node) -> tuple[Filesystem, ...]:
    """Those that hold what a node writes; EvidenceMissing where nobody asked."""
    return tuple(found for found in node.filesystems if _holds(found.mount.rstrip("/") or "/"))


def _holds(mount: str) -> bool:
    return mount == "/" or any(place == mount or place.startswith(mount + "/") for place in WRITTEN)


def threshold(node: Node, signal: str, default: float) -> tuple[float | None, bool]:
    """The kubelet's hard eviction threshold: a share, or (False) an amount; None where its configuration has none.

    A configuration that sets evictionHard at all replaces every default.
    """
    hard = node.kubelet.config.get("evictionHard") if node.kubelet.config else None
    if not isinstance(hard, dict) or not hard:
        return default, True
    value = hard.get(signal)
    if value is None:
        return None, True
    text = str(value).strip()
    if text.endswith("%"):
        try:
            return float(text[:-1]) / 100, True
        except ValueError:
            return None, True
    return quantity(text), False


def complaints(node: Node) -> tuple[Line, ...]:
    """Lines that say a disk is full, those about watches left out, newest last in each log."""
    return tuple(line for line in said(node, FULL, *EVERYONE) if not WATCH.search(line.text))


def out_of_inodes(node: Node) -> tuple[Filesystem, ...]:
    try:
        return tuple(f for f in relevant(node) if f.inodes and f.inodes_free / f.inodes < 0.005)
    except EvidenceMissing:
        return ()
