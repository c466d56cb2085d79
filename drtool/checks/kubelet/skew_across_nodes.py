"""Over all nodes, API servers may be one minor apart, and no kubelet may be newer than the oldest of them.

Behind a shared endpoint a kubelet may meet any API server. An upgrade that took the kubelets of one node, or one
control plane, too far stops Pods on some nodes and some requests only. Needs several nodes.

Fix: upgrade the API servers that are behind first, one minor at a time; then the kubelets.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.installed import kubelet_release
from manifests.node import Node

SEVERITY = Severity.ERROR
EXPLAINS = ("skew-unsupported",)


def find(case: Case) -> Iterator[Finding]:
    if not case.others:
        raise NotApplicable("one node alone has nothing to be compared with")
    servers = sorted(_servers((case.node, *case.others)))
    if not servers:
        raise EvidenceMissing("no API server's version is known")
    (oldest, behind), (newest, ahead) = servers[0], servers[-1]
    own = case.node.components.get("kube-apiserver")
    if own is not None and own.version is not None and own.version[:2] == oldest and newest[1] - oldest[1] > 1:
        there = Evidence("/etc/kubernetes/manifests/kube-apiserver.yaml", None, f"{ahead}: {_text(newest)}")
        yield Finding(
            f"The API server {_text(oldest)} here is more than one minor behind {ahead}'s {_text(newest)}",
            (own.image_evidence, there),
        )
    kubelet = kubelet_release(case.node)
    if kubelet.certain and kubelet.numbers[:2] > oldest:
        there = Evidence("/etc/kubernetes/manifests/kube-apiserver.yaml", None, f"{behind}: {_text(oldest)}")
        yield Finding(
            f"The kubelet {kubelet} here is newer than {behind}'s API server {_text(oldest)}", (kubelet.evidence, there)
        )


def _servers(nodes: tuple[Node, ...]) -> Iterator[tuple[tuple[int, int], str]]:
    for node in nodes:
        apiserver = node.components.get("kube-apiserver")
        if apiserver is not None and apiserver.version is not None:
            yield apiserver.version[:2], node.name


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
