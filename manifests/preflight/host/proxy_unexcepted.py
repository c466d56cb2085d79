"""A proxy is set in the environment, and not all of the cluster's own ranges are excepted from it.

kubeadm copies the proxy variables into the static Pods: the controller-manager then asks a proxy for the API server.
NO_PROXY must cover the node's address, the Pod and Service ranges, .svc and .cluster.local; Go understands CIDR there.

Fix: complete NO_PROXY in /etc/environment before `kubeadm init`.
"""

import re
from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
KUBEADM = ("HTTPProxy", "HTTPProxyCIDR")
FILE = "/etc/environment"


def find(node: Node) -> Iterator[Finding]:
    proxies = node.find(FILE, r"(?i)^\s*(?:export\s+)?(https?_proxy)\s*=\s*\S")
    excepted = node.find(FILE, r"(?i)^\s*(?:export\s+)?no_proxy\s*=\s*\"?([^\"]*)")
    named = {part.strip() for match, _ in excepted for part in re.split(r"[,\s]+", match[1]) if part.strip()}
    lacking = [what for what in (".svc", ".cluster.local") if what not in named]
    if not any("/" in part for part in named):
        lacking.append("the Pod and Service ranges")
    if proxies and lacking:
        yield Finding(
            f"{proxies[0][0][1]} is set, and NO_PROXY lacks {', '.join(lacking)}",
            (proxies[0][1], *(evidence for _, evidence in excepted)),
        )
