"""A kubeadm upgrade that ended early leaves the manifests that it was about to put in place.

kubeadm removes /etc/kubernetes/tmp/kubeadm-upgraded-manifests* when it is done. Its backups there
(kubeadm-backup-manifests-*, kubeadm-backup-etcd-*) are normal and useful, and so is their absence.

Fix: run the same `kubeadm upgrade` again, which may be repeated.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
TMP = "/etc/kubernetes/tmp"


def find(node: Node) -> Iterator[Finding]:
    for entry in node.capture.matching(rf"{TMP}/kubeadm-upgraded-manifests[^/]*"):
        names = node.capture.listings.get(entry.path, ())
        waiting = ", ".join(name for name in names if name.endswith(".yaml"))
        if waiting:
            yield Finding(
                f"An upgrade did not finish: {waiting} in {entry.path}", (Evidence(entry.path, None, waiting),)
            )
        elif entry.kind == "directory":
            yield Finding(
                f"{entry.path} is left from an upgrade; all its manifests were put in place",
                (Evidence(entry.path),),
                severity=Severity.INFO,
            )
