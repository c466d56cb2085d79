"""A control plane needs 2 CPUs and 1700 MB of memory: kubeadm refuses less.

Workers may be smaller. The kubelet, the runtime and the system's own services need about half a gigabyte by themselves.

Fix: enlarge the machine.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.host.machine import cpus, memory
from manifests.node import Node

SEVERITY = Severity.ERROR
KUBEADM = ("NumCPU", "Mem")
LEAST_CPUS, LEAST_MEGABYTES = 2, 1700


def find(node: Node) -> Iterator[Finding]:
    count, evidence = cpus(node)
    if count < LEAST_CPUS:
        yield Finding(f"A control plane needs {LEAST_CPUS} CPUs; this host has {count:.0f}", (evidence,))
    size, evidence = memory(node)
    megabytes = int(size) >> 20
    if megabytes < LEAST_MEGABYTES:
        yield Finding(f"A control plane needs {LEAST_MEGABYTES} MB; this host has {megabytes} MB", (evidence,))
