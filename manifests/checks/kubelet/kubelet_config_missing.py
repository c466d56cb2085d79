"""The kubelet's configuration file must be there, with what was set in it.

Without /var/lib/kubelet/config.yaml the kubelet exits at once (`failed to load Kubelet config file`). Before `kubeadm
init` or `join` that crash loop is expected; on a node that has manifests or a kubelet.conf it means a reset that went
half-way or a package without `kubeadm upgrade node`. kubeadm 1.30.0 wrote the file anew and lost settings of one's own:
what its backup under /etc/kubernetes/tmp has and the file lacks is named.

Fix: `kubeadm init phase kubelet-start` or `kubeadm upgrade node phase kubelet-config`, or put the backup back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.document import Document
from manifests.layout import Layout
from manifests.messages import last_said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "kubelet-not-running",
    "container-exited",
    "component-not-ready",
    "staticpodpath-mismatch",
    "swap-active",
    "cgroup-driver-mismatch",
    "resolvconf-missing",
    "resolvconf-loop",
)
BACKUPS = r"/etc/kubernetes/tmp/kubeadm-kubelet-config[^/]*/config\.yaml"
EMPTY = (None, "", "0s", "0", 0, False)


def find(node: Node) -> Iterator[Finding]:
    kubelet = node.kubelet
    if kubelet.config_entry.kind in {"absent", "dangling"}:
        joined = [path for path in ("/etc/kubernetes/kubelet.conf", node.manifests_directory) if _is_there(node, path)]
        if node.layout in {Layout.EMPTY, Layout.NOT_KUBEADM} or not joined:
            raise NotApplicable("this host was not joined")  # or was reset: a check of its own
        said = last_said(node, r"failed to load [Kk]ubelet config file.*no such file", "kubelet")
        if said is None and "/var/lib/kubelet" not in node.capture.listings and not _kept_anything(node):
            raise EvidenceMissing("/var/lib/kubelet is not in this tree")
        absent = Evidence(kubelet.config_path, None, kubelet.config_problem or "absent")
        evidence = (absent, Evidence(joined[0]), *((said.evidence,) if said else ()))
        yield Finding(f"{kubelet.config_path} is missing on a node that was joined", evidence)
    elif kubelet.config is not None:
        yield from _lost(node, kubelet.config)


def _is_there(node: Node, path: str) -> bool:
    return node.entry(path).kind not in {"absent", "unreadable", "dangling"}


def _kept_anything(node: Node) -> bool:
    """Whether the copy holds the kubelet's directory at all."""
    return any(
        path.startswith("/var/lib/kubelet/") and entry.kind != "absent" for path, entry in node.capture.entries.items()
    )


def _lost(node: Node, config: Document) -> Iterator[Finding]:
    backups = sorted(node.capture.matching(BACKUPS), key=lambda entry: (entry.mtime, entry.path))
    if not backups:
        return
    try:
        backup = node.document(backups[-1].path)
    except EvidenceMissing:
        return
    if not isinstance(backup.data, dict) or backup.get("kind") != "KubeletConfiguration":
        return
    lost = [
        key
        for key, value in backup.data.items()
        if config.get(key) is None
        and (value is False or not _empty(value))  # nobody writes a false that is the default
    ]
    if lost:
        yield Finding(
            f"{config.path} has lost {', '.join(lost)}, which its backup still has",
            (backup.evidence(lost[0]), Evidence(config.path, None, f"no {lost[0]}")),
        )


def _empty(value: Any) -> bool:
    """What kubeadm writes for a field that nobody set."""
    if isinstance(value, dict):
        return all(_empty(inner) for inner in value.values())
    return not value if isinstance(value, list) else value in EMPTY
