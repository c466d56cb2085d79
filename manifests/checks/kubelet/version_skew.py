"""The kubelet may not be newer than the API server, and at most three minors older (two before 1.25).

A newer kubelet asks an older API server for what it does not have: Pods on that node stop starting (`services have not
yet been read at least once`). It happens when packages are upgraded before `kubeadm upgrade`, or when a kubelet reaches
an older API server through the endpoint.

Fix: upgrade the API servers first, then the kubelets; or put the older kubelet back until then.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.installed import kubelet_release
from manifests.node import Node

SEVERITY = Severity.CRITICAL


def find(node: Node) -> Iterator[Finding]:
    apiserver = node.apiserver
    if apiserver.version is None:
        raise EvidenceMissing(f"the API server's version is unknown: {apiserver.container.image}")
    kubelet = kubelet_release(node)
    if not kubelet.certain:
        raise EvidenceMissing("the kubelet's version is unknown")
    server = ".".join(map(str, apiserver.version))
    evidence = (kubelet.evidence, apiserver.image_evidence)
    behind = apiserver.version[1] - kubelet.numbers[1]
    if behind < 0:
        yield Finding(f"The kubelet {kubelet} is newer than the API server {server}", evidence)
    elif behind > (3 if apiserver.version[1] >= 25 else 2):
        yield Finding(
            f"The kubelet {kubelet} is too old for the API server {server}", evidence, severity=Severity.ERROR
        )
