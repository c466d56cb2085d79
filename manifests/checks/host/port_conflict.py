"""Nothing else on this host may listen where the API server does, and no two static Pods on one port.

haproxy or nginx with `bind *:6443` beside an API server that binds every address on 6443: whichever starts second dies
with `address already in use`, or clients meet the balancer with no backend. A balancer on another port, or bound to the
VIP only while the API server binds the node's address, is fine. Of two static Pods that ask for one port of the host,
such as a copy of a manifest under another name, the kubelet admits one and rejects the other (`NodePorts`).

Fix: move the balancer to another port (controlPlaneEndpoint with it), or bind it to the VIP alone; move the Pod that is
one too many out of the directory.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.network.addresses import Address, address_of
from manifests.network.balancer import binds
from manifests.node import Node
from manifests.pod import StaticPod

SEVERITY = Severity.CRITICAL
EXPLAINS = ("ports-in-use", "container-exited", "component-not-ready")


def find(node: Node) -> Iterator[Finding]:
    yield from _pods(node)
    apiserver = node.apiserver
    port = apiserver.value("secure-port", "6443")
    bound = address_of(apiserver.value("bind-address", "0.0.0.0"))  # noqa: S104 - the program's default
    at = apiserver.flag("secure-port").evidence if apiserver.has("secure-port") else apiserver.image_evidence
    for bind in binds(node):
        if str(bind.port) == port and _same(bound, bind.host):
            where = bind.evidence.path
            yield Finding(
                f"{where} listens on {bind.host or '*'}:{port}, and so does the API server", (bind.evidence, at)
            )


def _same(bound: Address | None, other: str) -> bool:
    address = address_of(other)
    anywhere = not other or (address is not None and address.is_unspecified)
    return anywhere or bound is None or bound.is_unspecified or bound == address


def _pods(node: Node) -> Iterator[Finding]:
    """A second file with the same Pod is duplicate-static-pod's."""
    taken: dict[tuple[str, int], tuple[StaticPod, Evidence]] = {}
    for pod in sorted(node.pods, key=lambda pod: (not pod.path.endswith(f"/{pod.name}.yaml"), pod.path)):
        for port, evidence in pod.host_ports:
            first, at = taken.setdefault(port, (pod, evidence))
            if (first.namespace, first.name) != (pod.namespace, pod.name):
                title = f"{pod.path} and {first.path} both ask for the host's port {port[1]}/{port[0]}"
                yield Finding(title, (evidence, at))
