"""Versions must lie within the version skew policy.

API servers at most one minor apart; a kubelet not newer than the oldest API server and not more than three minors older
than the newest (two for a kubelet before 1.25); controller manager and scheduler not newer than the oldest API server
and at most one minor older. Mixed minors within that are an upgrade under way
(https://kubernetes.io/releases/version-skew-policy/).

Fix: `drtool upgrade-plan` gives the order in which to upgrade.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from drtool.core.skew import kubelet_may_lag
from snapshots.registry.cluster import Cluster, dotted, evidence, image_version, version
from snapshots.registry.objects import Object

SEVERITY = Severity.ERROR
PROGRAMS = ("kube-controller-manager", "kube-scheduler")
Version = tuple[int, int, int]


def find(cluster: Cluster) -> Iterator[Finding]:
    servers = _servers(cluster)
    (oldest, oldest_source), (newest, newest_source) = servers[0], servers[-1]
    if newest[1] - oldest[1] > 1:
        yield Finding(
            f"API servers {dotted(oldest)} and {dotted(newest)} are more than one minor apart",
            (oldest_source, newest_source),
        )
    for program in PROGRAMS:
        for pod in cluster.components(program):
            at = image_version(pod, program)
            if at and not 0 <= oldest[1] - at[1] <= 1:
                yield Finding(
                    f"{program} {dotted(at)} against API server {dotted(oldest)}", (_image(pod), oldest_source)
                )
    for node in cluster.nodes():
        yield from _kubelet(node, servers)


def _servers(cluster: Cluster) -> list[tuple[Version, Evidence]]:
    """Oldest first: the API servers' images, else the version that kubeadm noted."""
    pods = ((image_version(pod, "kube-apiserver"), pod) for pod in cluster.components("kube-apiserver"))
    found = sorted(((at, _image(pod)) for at, pod in pods if at), key=lambda each: each[0])
    if found:
        return found
    document, source = cluster.kubeadm()
    noted = version(str(document.get("kubernetesVersion")))
    if noted is None:
        raise EvidenceMissing("neither a Pod nor kubeadm-config tells the API server's version")
    return [(noted, Evidence(evidence(source).path, text=f"kubernetesVersion: {dotted(noted)}"))]


def _kubelet(node: Object, servers: list[tuple[Version, Evidence]]) -> Iterator[Finding]:
    (oldest, oldest_source), (newest, newest_source) = servers[0], servers[-1]
    at = version(str(node.at("status", "nodeInfo", "kubeletVersion")))
    if at is None:
        return
    shown = evidence(node, "status", "nodeInfo", "kubeletVersion")
    behind = kubelet_may_lag(at[1])
    if at[:2] > oldest[:2]:
        yield Finding(
            f"Node {node.name}: kubelet {dotted(at)} is newer than API server {dotted(oldest)}", (shown, oldest_source)
        )
    elif newest[1] - at[1] > behind:
        yield Finding(
            f"Node {node.name}: kubelet {dotted(at)} is over {behind} minors older than API server {dotted(newest)}",
            (shown, newest_source),
        )


def _image(pod: Object) -> Evidence:
    return evidence(pod, "spec", "containers", 0, "image")
