"""The kubelet may not be newer than the API server, and at most three minors older (two before 1.25).

A newer kubelet asks an older API server for what it does not have: Pods on that node stop starting (`services have not
yet been read at least once`). It happens when packages are upgraded before `kubeadm upgrade`, or when a kubelet reaches
an older API server through the endpoint: judged with the other nodes beside it, each API server counts that the kubelet
may reach.

Fix: upgrade the API servers first, then the kubelets; or put the older kubelet back until then.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from drtool.core.skew import kubelet_may_lag
from manifests.installed import kubelet_release
from manifests.network.addresses import address_of
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("skew-across-nodes", "skew-unsupported")


def find(case: Case) -> Iterator[Finding]:
    servers = [node for node in _asked(case) if "kube-apiserver" in node.components]
    if not servers:
        raise NotApplicable("no API server that this kubelet asks is at hand")
    kubelet = kubelet_release(case.node)
    if not kubelet.certain:
        raise EvidenceMissing("the kubelet's version is unknown")
    gap = ""
    for node in servers:
        image = node.apiserver.image_evidence
        version = node.apiserver.version
        if version is None:
            gap = gap or f"the API server's version is unknown: {node.apiserver.container.image}"
            continue
        where = "" if node is case.node else f" of {node.name}"
        server = ".".join(map(str, version)) + where
        at = image if node is case.node else Evidence(image.path, image.line, f"{node.name}: {image.text}")
        behind = version[1] - kubelet.numbers[1]
        if behind < 0:
            yield Finding(f"The kubelet {kubelet} is newer than the API server {server}", (kubelet.evidence, at))
        elif behind > kubelet_may_lag(kubelet.numbers[1]):
            title = f"The kubelet {kubelet} is too old for the API server {server}"
            yield Finding(title, (kubelet.evidence, at), severity=Severity.ERROR)
    if gap:
        raise EvidenceMissing(gap)


def _asked(case: Case) -> Iterator[Node]:
    """The own API server, and those of the others where the kubelet goes by an endpoint that they share."""
    yield case.node
    config = case.node.kubeconfigs.get("/etc/kubernetes/kubelet.conf")
    if config is None:
        return
    address = address_of(config.host)
    local = address is not None and (address.is_loopback or _own(case.node, config.host))
    if not local:
        yield from case.others


def _own(node: Node, host: str) -> bool:
    apiserver = node.components.get("kube-apiserver")
    return apiserver is not None and apiserver.value("advertise-address") == host.strip("[]")
