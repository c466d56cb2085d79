"""SELinux must not deny the control plane its files.

In enforcing mode etcd and the API server get `permission denied` on files whose label containers may not use, often
after a restore, or after a reboot that ended a `setenforce 0`. Enforcing without denials is healthy, and so are denials
of other programs.

Fix: `restorecon -R` or `chcon -R -t container_file_t` on the directory; `SELINUX=permissive` only until then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.messages import said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "etcd-data-dir-permissions", "etcd-wal-corrupt")
AUDIT, CONFIG, ENFORCE = "/var/log/audit/audit.log", "/etc/selinux/config", "/sys/fs/selinux/enforce"
DENIED = r"avc:\s+denied"
OURS = re.compile(r'comm="(etcd|kube-\w[\w-]*|kubelet|containerd|runc|crio)"|var/lib/etcd|etc/kubernetes')


def find(node: Node) -> Iterator[Finding]:
    if node.entry(ENFORCE).data is None and node.entry(CONFIG).data is None:
        raise NotApplicable("no SELinux on this host")
    mode = _enforcing(node)
    if mode is None:
        return
    lines = [evidence for match, evidence in node.find(AUDIT, DENIED) if OURS.search(match.string)]
    lines += [line.evidence for line in said(node, DENIED, "kernel") if OURS.search(line.text)]
    denied = [line for line in lines if "permissive=1" not in line.text]
    if denied:
        name = re.search(r'comm="([^"]+)"', denied[-1].text)
        who = name[1] if name else "the control plane"
        yield Finding(f"SELinux denies {who} access to its files", (denied[-1], mode))


def _enforcing(node: Node) -> Evidence | None:
    """The kernel's own word counts before what the file says for the next boot."""
    entry = node.entry(ENFORCE)
    if entry.data is not None:
        value = entry.data.decode("ascii", "replace").strip()
        return Evidence(ENFORCE, 1, value) if value == "1" else None
    configured = node.find(CONFIG, r"^\s*SELINUX\s*=\s*enforcing\b")
    return configured[-1][1] if configured else None
