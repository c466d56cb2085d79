"""The file systems that a node writes to must be mounted read-write.

After an I/O error the kernel remounts ext4 read-only, and XFS shuts down; etcd, the kubelet and the runtime then fail
at their next write. Read-only /usr or / is normal where the operating system is an image, as long as what the node
writes lies elsewhere.

Fix: look into the kernel's log for the disk's errors, replace the disk or `fsck` from outside, then remount.
"""

from __future__ import annotations

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.checks.host.disk_full import EXPLAINS as CONSEQUENCES
from manifests.host.mounts import mounted, over
from manifests.layout import Layout
from manifests.messages import last_said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = CONSEQUENCES
KERNEL = r"Remounting filesystem read-only|EXT4-fs error|XFS \(\S+\): .*[Ss]hutting down|Aborting journal"
REFUSED = r"[Rr]ead-only file system"


def find(node: Node) -> Iterator[Finding]:
    said = last_said(node, KERNEL, "kernel")
    refused = last_said(node, REFUSED, "kubelet", "containerd", "crio", "etcd")
    logs = tuple(line.evidence for line in (said, refused) if line is not None)
    try:
        mounts = mounted(node)
    except EvidenceMissing:
        if said is None or refused is None:
            raise
        yield Finding("A file system was remounted read-only after an error", logs)
        return
    seen: set[Evidence] = set()
    for path in _written(node):
        mount = over(mounts, path)
        if mount is not None and "ro" in mount.options and mount.evidence not in seen:
            seen.add(mount.evidence)
            yield Finding(f"{mount.path} is mounted read-only, and {path} lies on it", (mount.evidence, *logs))


def _written(node: Node) -> tuple[str, ...]:
    etcd = node.components.get("etcd")
    data = (etcd.container.host_path(etcd.value("data-dir")) or "/var/lib/etcd",) if etcd else ()
    needed = ("/var/lib/kubelet", "/var/log") if node.layout is not Layout.EMPTY else ()
    return (*data, *needed)
