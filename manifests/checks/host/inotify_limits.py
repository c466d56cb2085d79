"""Programs must be able to watch files: the kernel's inotify limits must not be used up.

When they are, the kubelet or containerd's CRI plugin fails with `too many open files` or, misleadingly, `no space left
on device` about a watch. Low values alone mean nothing: a program must have hit them.

Fix: raise fs.inotify.max_user_instances and fs.inotify.max_user_watches in /etc/sysctl.d, restart what failed.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.messages import JOURNALS, last_said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("kubelet-not-running", "runtime-not-running", "container-exited", "component-not-ready")
HIT = (
    r"(inotify|fsnotify|watcher)[^\n]*(too many open files|no space left on device)"
    r"|(too many open files|no space left on device)[^\n]*(inotify|fsnotify)|user limit on inotify"
)
LIMITS = ("fs.inotify.max_user_instances", "fs.inotify.max_user_watches")


def find(node: Node) -> Iterator[Finding]:
    line = last_said(node, HIT, "containerd", "crio", "kubelet", "kube-apiserver", "kube-controller-manager")
    if line is not None:
        yield Finding("A program hit the kernel's inotify limits", (line.evidence, *_limits(node)))
    elif not any(node.journal(unit) for unit in JOURNALS):
        raise EvidenceMissing("no log says whether a program hit the inotify limits")


def _limits(node: Node) -> Iterator[Evidence]:
    for name in LIMITS:
        try:
            yield node.sysctl(name)[1]
        except EvidenceMissing:
            continue
