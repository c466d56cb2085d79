"""A running server shows another certificate than its file holds.

It was started before the file was replaced, and has not read it since; or something else answers on its port. API
server and etcd read their leafs again by themselves on current versions, CA files never.

Fix: restart the static Pod: move its manifest out of the directory for 20 seconds and back, or `crictl stop` the
container. Deleting the mirror Pod does nothing.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Layer, Severity
from manifests.kubeconfig import split_url
from manifests.live import ProbeAnswer
from manifests.node import Node
from manifests.pki.certificates import Certificate
from manifests.pki.serving import API_SERVER, ETCD_PEER, ETCD_SERVER, serving

SEVERITY = Severity.ERROR
PEER_FLAGS, CLIENT_FLAGS = ("listen-peer-urls",), ("listen-client-urls", "advertise-client-urls")


def find(node: Node) -> Iterator[Finding]:
    answers = [answer for answer in node.probes if answer.served is not None]
    if not answers:
        raise NotApplicable("no TLS handshake was made")
    for answer in answers:
        certificate = _of_file(node, answer)
        if certificate is None or answer.served is None or answer.served.fingerprint == certificate.fingerprint:
            continue
        yield Finding(
            f"{answer.url} serves another certificate than {certificate.path} holds",
            (
                answer.evidence,
                certificate.says(f"CN={certificate.common_name}, {certificate.fingerprint[:16]}"),
            ),
            layer=Layer.ETCD if answer.component == "etcd" else Layer.APISERVER,
        )


def _of_file(node: Node, answer: ProbeAnswer) -> Certificate | None:
    """None where the probe is not of a server whose certificate a flag names."""
    port = split_url(answer.url)[1]
    if answer.component == "kube-apiserver":
        return serving(node, API_SERVER)
    if answer.component != "etcd":
        return None
    if port in _ports(node, PEER_FLAGS):
        return serving(node, ETCD_PEER)
    return serving(node, ETCD_SERVER) if port in _ports(node, CLIENT_FLAGS) else None


def _ports(node: Node, flags: tuple[str, ...]) -> set[int | None]:
    return {split_url(url)[1] for name in flags for url in node.etcd.names(name)}
