"""The file systems that etcd, the kubelet and the runtime write to must have room.

A full disk truncates what is written: empty certificates, torn write-ahead logs, state that a daemon cannot read again.
It stays the cause after the space is free again, and the log tells. Below the kubelet's eviction threshold (10 per cent
by default) Pods are evicted and the node is under DiskPressure. Old copies of etcd under
/etc/kubernetes/tmp/kubeadm-backup-etcd-* are a usual reason. etcd's own quota and the kernel's watch limits are other
things.

Fix: make room (crictl rmi --prune, journalctl --vacuum-size, all but the newest backup under /etc/kubernetes/tmp), then
restart the kubelet; repair what was truncated after that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.host.space import complaints, out_of_inodes, relevant, threshold
from manifests.live import Filesystem
from manifests.logs import Line
from manifests.messages import last_said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "pem-empty-or-garbage",
    "kubelet-client-link",
    "key-pair-mismatch",
    "manifest-unparsable",
    "kubelet-config-invalid",
    "manager-state-mismatch",
    "containerd-state-corrupt",
    "etcd-wal-corrupt",
    "etcd-wal-missing",
    "etcd-db-corrupt",
    "etcd-snap-ahead-of-db",
    "etcd-slow-disk",
    "image-not-pullable",
    "sandbox-image-unavailable",
    "kubelet-not-running",
    "runtime-not-running",
    "container-exited",
    "component-not-ready",
)
EVICTS = r"must evict pod\(s\) to reclaim(\" resourceName=\"| )ephemeral-storage"
RELIEF = r"NodeHasNoDiskPressure|able to reduce resource pressure"
PRESSURE = rf"{RELIEF}|NodeHasDiskPressure|attempting to reclaim(\" resourceName=\"| )ephemeral-storage"
SHARE, ROOM = 0.02, 100 << 20


def find(node: Node) -> Iterator[Finding]:
    gap: EvidenceMissing | None = None
    full: list[Finding] = []
    try:
        full = [finding for f in relevant(node) for finding in _judge(node, f)]
    except EvidenceMissing as missing:
        gap = missing
    evicted = last_said(node, EVICTS, "kubelet")
    pressed = _pressed(node)
    said = complaints(node)
    if full:
        yield from full
    elif evicted is not None:
        title = "The kubelet evicts Pods to free disk space"
        yield Finding(title, (evicted.evidence, *_backups(node)))
    elif pressed is not None:
        title = "The node is under DiskPressure"
        yield Finding(title, (pressed.evidence, *_backups(node)), severity=Severity.ERROR)
    elif said and not out_of_inodes(node):
        title = "A disk was full: a program could not write"
        yield Finding(title, (said[-1].evidence, *_backups(node)))
    elif gap:
        raise gap


def _pressed(node: Node) -> Line | None:
    """The kubelet's last word on the matter, where it is that space is short."""
    last = last_said(node, PRESSURE, "kubelet")
    return last if last is not None and not re.search(RELIEF, last.text) else None


def _judge(node: Node, found: Filesystem) -> Iterator[Finding]:
    if not found.size:
        return
    evidence = (found.evidence, *_backups(node))
    if found.free < max(found.size * SHARE, ROOM):
        yield Finding(f"{found.mount} is full: {found.free >> 20} MiB are free", evidence)
        return
    limit, share = threshold(node, "nodefs.available", 0.10)
    if limit is not None and found.free < (found.size * limit if share else limit):
        title = f"{found.mount} is below the kubelet's eviction threshold: {found.free * 100 // found.size} % are free"
        yield Finding(title, evidence, severity=Severity.ERROR)


def _backups(node: Node) -> tuple[Evidence, ...]:
    """kubeadm's copies of etcd, where there are several."""
    copies = [entry.path for entry in node.capture.matching(r"/etc/kubernetes/tmp/kubeadm-backup-etcd-[^/]+")]
    return (Evidence("/etc/kubernetes/tmp", None, f"{len(copies)} copies of etcd's data"),) if len(copies) > 1 else ()
