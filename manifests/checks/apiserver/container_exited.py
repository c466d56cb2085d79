"""Each program of the control plane must have a container that runs.

The exit status and the last words of the newest container are shown. It is what a fault in its files, its host or the
programs below it looks like, and a cause only where none of those is found. A container that ended before the newest
edit of its manifest says nothing about that edit.

Fix: read the last lines; `crictl logs`, or the files under /var/log/pods.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.installed import layer_of
from manifests.live import ContainerState
from manifests.logs import Line
from manifests.node import Node
from manifests.pod import Component

SEVERITY = Severity.CRITICAL
SYMPTOM = True
LAST_WORDS = re.compile(
    r'^F\d{4} |"command failed"|^panic: |^fatal error: |"level":"(fatal|panic)"|^Error: |unknown flag: '
    r"|flag provided but not defined"
)
# Words that follow from something else and are never a cause by themselves.
FOLLOWS = re.compile(
    r"leaderelection lost|Unable to create storage backend|error creating storage factory|:2379: connect: conn"
    r"|failed to connect to the etcd|:6443: connect: connection|context deadline exceeded|transport is closing"
)
ENDED = 5  # lines from the end of a log among which a program's last words stand


def find(node: Node) -> Iterator[Finding]:
    if not node.components:
        raise NotApplicable("no program of the control plane here")
    try:
        containers = node.containers
    except (NotApplicable, EvidenceMissing):
        yield from _from_logs(node)
        return
    for program, component in node.components.items():
        own = [c for c in containers if c.name == component.container.name and c.namespace in {"", "kube-system"}]
        if own and own[-1].state == "exited" and not any(c.state == "running" for c in own):
            if _edited_since(node, component, own[-1].finished):
                continue
            yield _exited(node, program, own[-1])


def _exited(node: Node, program: str, container: ContainerState) -> Finding:
    lines = node.container_logs.get(container.name, ())
    code = f" with status {container.exit_code}" if container.exit_code is not None else ""
    words = _last_words(lines) or (lines[-1] if lines else None)
    evidence = (container.evidence, *((words.evidence,) if words else ()))
    return Finding(f"{program} exited{code} and does not run", evidence, layer=layer_of(program))


def _from_logs(node: Node) -> Iterator[Finding]:
    """A copied tree: a log that ends with a program's last words."""
    if not node.container_logs:
        raise EvidenceMissing("neither the runtime nor /var/log/pods tells what became of the containers")
    for program, component in node.components.items():
        words = _last_words(node.container_logs.get(component.container.name, ()))
        if words is not None and not _edited_since(node, component, _moment(words.time)):
            title = f"{program} exited: its log ends with an error"
            severity = Severity.WARNING if FOLLOWS.search(words.text) else None
            yield Finding(title, (words.evidence, Evidence(component.path)), severity, layer_of(program))


def _last_words(lines: tuple[Line, ...]) -> Line | None:
    return next((line for line in reversed(lines[-ENDED:]) if LAST_WORDS.search(line.text)), None)


def _edited_since(node: Node, component: Component, ended: datetime | None) -> bool:
    edited = node.entry(component.path).mtime
    return ended is not None and edited > ended.timestamp()


def _moment(time: str) -> datetime | None:
    try:
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", time)).astimezone(UTC)
    except ValueError:
        return None
