"""An automatic upgrade touched the kubelet or the container runtime.

It is never a cause by itself: what the upgrade changed is. But several control planes that go down in one night often
ran the same job. Packages on hold are not touched.

Fix: `apt-mark hold kubelet kubeadm kubectl containerd.io`, and leave these packages out of the automatic upgrades.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.INFO
HISTORY, DNF = "/var/log/apt/history.log", "/var/log/dnf.log"
PACKAGES = re.compile(r"\b(kubelet|kubeadm|containerd(?:\.io)?|docker(?:\.io|-ce)?|cri-o|crio|runc|kubernetes-cni)\b")


def find(node: Node) -> Iterator[Finding]:
    if node.entry(HISTORY).data is None and node.entry(DNF).data is None:
        raise EvidenceMissing("no log of the package manager in this tree")
    lines = (node.entry(HISTORY).data or b"").decode("utf-8", "replace").splitlines()
    start = ""
    automatic = False
    for number, line in enumerate(lines, 1):
        key, _, value = line.partition(": ")
        if key == "Start-Date":
            start, automatic = value.strip(), False
        elif key == "Commandline":
            automatic = "unattended-upgrade" in value
        elif key in {"Upgrade", "Remove", "Install"} and automatic:
            touched = sorted(set(PACKAGES.findall(value)))
            if touched:
                what = f"{key}: {', '.join(touched)} ({start})"
                title = f"An unattended upgrade changed {', '.join(touched)} at {start}"
                yield Finding(title, (Evidence(HISTORY, number, what),))
    for match, evidence in node.find(DNF, r"dnf-automatic.*\b(kubelet|containerd\S*|cri-o|docker-ce)\b"):
        yield Finding(f"dnf-automatic changed {match[1]}", (evidence,))
