"""What programs said: lines of journals and container logs that match a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator

from manifests.logs import Line
from manifests.node import Node

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
JOURNALS = ("kernel", "containerd", "crio", "kubelet")
EVERYONE = (*JOURNALS, *CONTROL_PLANE)


def said(node: Node, pattern: str, *sources: str) -> Iterator[Line]:
    """Matching lines of each source in turn, oldest first; a source is a journal's unit or a container's name.

    None where the tree holds no such log. /var/log/kern.log stands in for the kernel's journal.
    """
    expression = re.compile(pattern)
    for source in sources or EVERYONE:
        lines = node.journal(source) if source in JOURNALS else node.container_logs.get(source, ())
        for line in lines:
            if expression.search(line.text):
                yield line
        if source == "kernel" and not lines:
            for match, evidence in node.find("/var/log/kern.log", pattern):
                yield Line("", match.string, evidence)


def last_said(node: Node, pattern: str, *sources: str) -> Line | None:
    """The last match of the first source that has one."""
    for source in sources or EVERYONE:
        found = tuple(said(node, pattern, source))
        if found:
            return found[-1]
    return None
