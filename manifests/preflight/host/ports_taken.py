"""The ports of a control plane must be free before kubeadm starts one.

6443 API server, 2379 and 2380 etcd, 10250 kubelet, 10257 controller-manager, 10259 scheduler. On a node that has joined
they are held by those programs, which is right.

Fix: stop what holds the port (named where the host is live), or move it.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from manifests.node import Node

SEVERITY = Severity.ERROR
KUBEADM = ("Port-6443", "Port-2379", "Port-2380", "Port-10250", "Port-10257", "Port-10259")
PORTS = {
    6443: "the API server",
    2379: "etcd's clients",
    2380: "etcd's peers",
    10250: "the kubelet",
    10257: "the controller-manager",
    10259: "the scheduler",
}


def find(node: Node) -> Iterator[Finding]:
    if node.components or node.kubeconfigs:
        raise NotApplicable("this host has joined a cluster already: its own programs hold the ports")
    for listener in node.listeners:
        if listener.port in PORTS:
            by = f"by {listener.command}" if listener.command else "by a program that the kernel's table does not name"
            yield Finding(f"Port {listener.port} ({PORTS[listener.port]}) is held {by}", (listener.evidence,))
