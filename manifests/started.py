"""When the running programs were started, as far as the tree tells."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from drtool.core.check import EvidenceMissing, NotApplicable
from manifests.live import moment
from manifests.logs import read_container
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
        lines = read_container(entry)
        if not lines:
            continue
        container = entry.path.split("/")[-2]
        if lines[-1].time > newest.get(container, ("", ""))[0]:
            newest[container] = (lines[-1].time, "" if entry.cut else lines[0].time)
    begun = {container: moment(first) for container, (_, first) in newest.items()}
    return {container: at for container, at in begun.items() if at is not None}
