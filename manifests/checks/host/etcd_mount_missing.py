"""etcd's data directory must lie on the file system that is meant for it.

When the disk of /var/lib/etcd is not mounted after a boot, etcd finds the empty directory below the mount point and
starts a new, empty member, or refuses to join: the data is not lost, it is elsewhere. /etc/fstab or a .mount unit says
what is meant, /proc/mounts what is.

Fix: stop the kubelet, park etcd.yaml, mount the disk, look that member/ is there, put etcd.yaml back. Never delete
anything before that.
"""

from __future__ import annotations

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.host.mounts import fstab, mounted
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "etcd-data-dir-missing",
    "etcd-data-dir-permissions",
    "etcd-wal-missing",
    "etcd-cluster-id-mismatch",
    "etcd-initial-state-wrong",
    "etcd-name-vs-initial-cluster",
    "etcd-membership-stale",
    "container-exited",
    "component-not-ready",
)


def find(node: Node) -> Iterator[Finding]:
    etcd = node.etcd
    directory = etcd.container.host_path(etcd.value("data-dir", "/var/lib/etcd")) or "/var/lib/etcd"
    meant = [(path, at) for path, at in _meant(node) if path != "/" and (directory + "/").startswith(path + "/")]
    if not meant:
        return
    present = {mount.path for mount in mounted(node)}
    for path, evidence in meant:
        if path not in present:
            where = Evidence("/proc/mounts", None, f"nothing is mounted on {path}")
            yield Finding(f"{path}, which holds etcd's data, is not mounted", (evidence, where))


def _meant(node: Node) -> Iterator[tuple[str, Evidence]]:
    for line in fstab(node):
        if line.path.startswith("/") and not {"noauto", "x-systemd.automount"} & set(line.options):
            yield line.path, line.evidence
    for entry in node.capture.matching(r"/etc/systemd/system/[^/]+\.mount"):
        for match, evidence in node.find(entry.path, r"^\s*Where\s*=\s*(/\S*)"):
            yield match[1].rstrip("/") or "/", evidence
