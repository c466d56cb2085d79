"""The resolv.conf that the kubelet gives to Pods must exist.

Every Pod sandbox fails with `open /run/systemd/resolve/resolv.conf: no such file or directory` otherwise, static Pods
too. kubeadm names systemd-resolved's file where that service runs; without it, or with /etc/resolv.conf a dangling
link, nothing starts. A copied tree seldom holds /run, so there the log must say it.

Fix: set resolvConf to a file that exists (or start systemd-resolved), restart the kubelet.
"""

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.messages import last_said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "resolvconf-loop")


def find(node: Node) -> Iterator[Finding]:
    path, evidence = node.kubelet.setting("resolv-conf", "resolvConf", default="/etc/resolv.conf")
    path = str(path)
    if not path:
        return  # "" means none on purpose
    entry = node.entry(path)
    said = last_said(node, rf"open {re.escape(path)}: no such file", "kubelet")
    if entry.data is not None:
        return
    if said is not None:
        yield Finding(f"The kubelet's resolv.conf does not exist: {path}", (evidence, said.evidence))
    elif node.capture.live and entry.kind in {"absent", "dangling"}:
        yield Finding(
            f"The kubelet's resolv.conf does not exist: {path}", (evidence, Evidence(path, None, entry.error))
        )
    else:
        raise EvidenceMissing(f"{path} is not in this tree, and no log line says that the kubelet misses it")
