"""A control plane needs two processors and two gigabytes of memory.

kubeadm's preflight refuses less than 2 CPUs and less than 1700 MB. A smaller machine runs, slowly: etcd misses its
heartbeats and the kernel kills what is largest.

Fix: enlarge the machine, then restart the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from manifests.host.machine import cpus, memory
from manifests.node import Node

SEVERITY = Severity.WARNING
LEAST_CPUS, LEAST_MEMORY = 2, 1700 * 1000 * 1000


def find(node: Node) -> Iterator[Finding]:
    if not node.layout.control_plane:
        raise NotApplicable(f"a {node.layout} node is no control plane")
    gap: EvidenceMissing | None = None
    try:
        count, evidence = cpus(node)
        if count < LEAST_CPUS:
            yield Finding(f"A control plane needs {LEAST_CPUS} CPUs; this host has {count:.0f}", (evidence,))
    except EvidenceMissing as missing:
        gap = missing
    size, evidence = memory(node)
    if size < LEAST_MEMORY:
        yield Finding(f"A control plane needs 1700 MB of memory; this host has {size / 1e6:.0f} MB", (evidence,))
    if gap:
        raise gap
