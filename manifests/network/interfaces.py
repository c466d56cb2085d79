"""The network interfaces that the host has, from the kernel's own files."""

from __future__ import annotations

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from manifests.node import Node


def interfaces(node: Node) -> tuple[frozenset[str], Evidence]:
    """Their names, and the file that says so.

    /proc/net/dev and /sys/class/net list all. if_inet6 and the routes list those that are up: taken together they count
    where they show more than loopback. EvidenceMissing where nothing tells.
    """
    listed = {match[1] for match, _ in node.find("/proc/net/dev", r"^\s*([^\s:|]+):")}
    if listed:
        return frozenset(listed), Evidence("/proc/net/dev", None, ", ".join(sorted(listed)))
    paths = [entry.path.split("/") for entry in node.capture.matching(r"/sys/class/net/[^/]+/address")]
    if paths:
        names = frozenset(path[4] for path in paths)
        return names, Evidence("/sys/class/net", None, ", ".join(sorted(names)))
    up = {match[1] for match, _ in node.find("/proc/net/if_inet6", r"^[0-9a-f]{32}(?: \S+){4}\s+(\S+)")}
    up |= {match[1] for match, _ in node.find("/proc/net/route", r"^(\S+)\s+[0-9A-F]{8}\s")}
    if up - {"lo"}:
        return frozenset(up), Evidence("/proc/net/if_inet6", None, ", ".join(sorted(up)))
    raise EvidenceMissing("the host's interfaces are not known: no /proc/net/dev, no /sys/class/net")
