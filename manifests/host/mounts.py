"""Mounted file systems and the ones that should be mounted."""

from __future__ import annotations

from dataclasses import dataclass

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from manifests.node import Node

MOUNTS, FSTAB = "/proc/mounts", "/etc/fstab"


@dataclass(frozen=True, slots=True)
class Mounted:
    """A line of /proc/mounts or /etc/fstab (fstab(5)): spaces in a path are written as \\040."""

    device: str
    path: str
    kind: str
    options: tuple[str, ...]
    evidence: Evidence


def mounted(node: Node) -> tuple[Mounted, ...]:
    """EvidenceMissing where the tree holds no /proc/mounts with a root file system."""
    found = _lines(node, MOUNTS)
    if not any(line.path == "/" for line in found):
        raise EvidenceMissing("what is mounted is unknown: no /proc/mounts of the host in this tree")
    return found


def fstab(node: Node) -> tuple[Mounted, ...]:
    return _lines(node, FSTAB)


def _lines(node: Node, path: str) -> tuple[Mounted, ...]:
    found = []
    for match, evidence in node.find(path, r"^\s*([^#\s]\S*)\s+(\S+)\s+(\S+)(?:\s+(\S+))?"):
        place = match[2].replace("\\040", " ")
        place = place.rstrip("/") or "/" if place.startswith("/") else place
        found.append(Mounted(match[1], place, match[3], tuple((match[4] or "").split(",")), evidence))
    return tuple(found)


def over(mounts: tuple[Mounted, ...], path: str) -> Mounted | None:
    """The mount that a path lies on: the deepest, and of those on one place the last."""
    best: Mounted | None = None
    for mount in mounts:
        inside = mount.path == "/" or path == mount.path or path.startswith(mount.path + "/")
        if inside and (best is None or len(mount.path) >= len(best.path)):
            best = mount
    return best
