"""This node is a worker: it has a kubelet and no control plane to judge.

Only the kubelet's own files matter here: kubelet.conf, its client certificate, its configuration, the runtime, the
network. No manifests, no admin.conf and an empty static Pod directory are healthy.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.layout import Layout
from manifests.node import Node

SEVERITY = Severity.INFO


def find(node: Node) -> Iterator[Finding]:
    if node.layout is not Layout.WORKER:
        raise NotApplicable(f"this is a {node.layout} node")
    yield Finding("This node is a worker: it runs no control plane", (Evidence("/etc/kubernetes/kubelet.conf"),))
