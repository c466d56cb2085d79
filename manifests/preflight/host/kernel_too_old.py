"""The kernel must be one that Kubernetes is tested with: 5.4, 5.10, 5.15, or 6 and newer.

kubeadm's system verification refuses others. cgroup v2 wants 5.8 at least; 5.10 is recommended.

Fix: update the distribution's kernel.
"""

import re
from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.node import Node

SEVERITY = Severity.ERROR
KUBEADM = ("SystemVerification",)
FIT = re.compile(r"5\.(4|10|15)\.|([6-9]|[1-9]\d+)\.\d")


def find(node: Node) -> Iterator[Finding]:
    release, evidence = node.sysctl("kernel.osrelease")
    if not FIT.match(release):
        yield Finding(f"Kernel {release} is none that Kubernetes is tested with", (evidence,))
