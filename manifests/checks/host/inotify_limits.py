"""Programs must be able to watch files: the kernel's inotify limits must not be used up.

When they are, the kubelet or containerd's CRI plugin fails with `too many open files` or, misleadingly, `no space left
on device` about a watch. Low values alone mean nothing: a program must have hit them.

Fix: raise fs.inotify.max_user_instances and fs.inotify.max_user_watches in /etc/sysctl.d, restart what failed.
"""

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.messages import JOURNALS, said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("kubelet-not-running", "runtime-not-running", "container-exited", "component-not-ready")
HIT = r"too many open files|no space left on device|user limit on inotify"
WATCH = re.compile(r"inotify|fsnotify|watcher")
SOURCES = ("containerd", "crio", "kubelet", "kube-apiserver", "kube-controller-manager")
LIMITS = ("fs.inotify.max_user_instances", "fs.inotify.max_user_watches")


def find(node: Node) -> Iterator[Finding]:
    lines = [line for line in said(node, HIT, *SOURCES) if WATCH.search(line.text)]
    if lines:
        yield Finding("A program hit the kernel's inotify limits", (lines[-1].evidence, *_limits(node)))
    elif not any(node.journal(unit) for unit in JOURNALS):
        raise EvidenceMissing("no log says whether a program hit the inotify limits")


def _limits(node: Node) -> Iterator[Evidence]:
    for name in LIMITS:
        try:
            yield node.sysctl(name)[1]
        except EvidenceMissing:
            continue
