"""When the running programs were started, as far as the tree tells."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from drtool.core.check import EvidenceMissing, NotApplicable
from manifests.live import moment
from manifests.logs import CRI
from manifests.node import Node

LOGS = r"/var/log/pods/kube-system_[^/]+/[^/]+/\d+\.log"


def started(node: Node) -> Mapping[str, datetime]:
    """Container name to the start of its present run (UTC): by the runtime, else by its newest log's first line."""
    return {**_by_logs(node), **_by_runtime(node)}


def _by_runtime(node: Node) -> dict[str, datetime]:
    try:
        running = [c for c in node.containers if c.state == "running" and c.created is not None]
    except (EvidenceMissing, NotApplicable):
        return {}
    return {c.name: c.created for c in sorted(running, key=lambda c: c.attempt) if c.created is not None}


def _by_logs(node: Node) -> dict[str, datetime]:
    """Of a log whose head was cut the start is not known."""
    newest: dict[str, tuple[str, str]] = {}
    for entry in node.capture.matching(LOGS):
        lines = (entry.data or b"").rstrip().split(b"\n")
        first, last = _time(lines[0]), _time(lines[-1])
        container = entry.path.split("/")[-2]
        if last > newest.get(container, ("", ""))[0]:
            newest[container] = (last, "" if entry.cut else first)
    begun = {container: moment(first) for container, (_, first) in newest.items()}
    return {container: at for container, at in begun.items() if at is not None}


def _time(line: bytes) -> str:
    match = CRI.match(line.decode("utf-8", "replace"))
    return match[1] if match else ""
