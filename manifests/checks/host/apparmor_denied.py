"""AppArmor must not deny the control plane or the runtime what they need.

The kernel's log says `apparmor="DENIED"` with the profile and the program. Denials of other programs (snaps, cups,
browsers) mean nothing here.

Fix: reload or correct the profile that is named (`aa-complain PROFILE` to prove it), restart the runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.messages import said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "containerd-state-corrupt")
DENIED = r'apparmor="DENIED"'
RUNTIME = re.compile(r'(profile|comm)="(/\S*/)?(runc|crun|containerd[\w-]*|crio|conmon|kubelet)"')
CONTAINER = re.compile(r'profile="(cri-containerd\.apparmor\.d|crio-default|docker-default)"')
CONTROL_PLANE = re.compile(r'comm="(etcd|kube-apiserver|kube-controller|kube-scheduler)')


def find(node: Node) -> Iterator[Finding]:
    if not node.journal("kernel") and node.entry("/var/log/kern.log").data is None:
        raise EvidenceMissing("the kernel's log is not in this tree")
    newest: dict[str, Finding] = {}
    for line in said(node, DENIED, "kernel"):
        heavy = bool(RUNTIME.search(line.text) or CONTROL_PLANE.search(line.text))
        if not heavy and not CONTAINER.search(line.text):
            continue
        program = re.search(r'comm="([^"]+)"', line.text)
        name = program[1] if program else "a container"
        severity = None if heavy else Severity.ERROR
        newest[name] = Finding(f"AppArmor denies {name} what it needs", (line.evidence,), severity)
    yield from newest.values()
