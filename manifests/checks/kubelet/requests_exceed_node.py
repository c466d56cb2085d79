"""The static Pods' resource requests must fit into the node.

The kubelet refuses a static Pod whose requests are larger than what the node can give after kubeReserved,
systemReserved and the eviction threshold (`UnexpectedAdmissionError`, `Pod admission denied`), and does not try again.
It happens after the machine was made smaller, or with requests of one's own.

Fix: lower the requests or enlarge the node, then restart the kubelet.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.host.machine import cpus, memory
from manifests.node import Node
from manifests.quantity import quantity

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "cpu-or-memory-too-small")
UNITS = {"cpu": "CPUs", "memory": "bytes"}


@dataclass(frozen=True, slots=True)
class Request:
    pod: str
    amount: float
    evidence: Evidence


def find(node: Node) -> Iterator[Finding]:
    if not node.pods:
        raise NotApplicable("no static Pods here")
    gap: EvidenceMissing | None = None
    for resource, capacity_of in (("cpu", cpus), ("memory", memory)):
        requests = tuple(_requests(node, resource))
        if not requests:
            continue
        try:
            capacity, evidence = capacity_of(node)
        except EvidenceMissing as missing:
            gap = gap or missing
            continue
        reserved = _reserved(node, resource)
        total = sum(request.amount for request in requests)
        if total > capacity - reserved:
            largest = max(requests, key=lambda request: request.amount)
            yield Finding(
                f"Static Pods ask for {_shown(resource, total)}, and the node has"
                f" {_shown(resource, capacity - reserved)} to give",
                (largest.evidence, evidence),
            )
    if gap:
        raise gap


def _requests(node: Node, resource: str) -> Iterator[Request]:
    for pod in node.pods:
        for container in pod.containers:
            where = (*container.position, "resources", "requests", resource)
            amount = quantity(pod.document.get(*where))
            if amount:
                yield Request(pod.name, amount, pod.evidence(*where))


def _reserved(node: Node, resource: str) -> float:
    """kubeReserved and systemReserved; for memory the hard eviction threshold too, 100 MiB by default."""
    config = node.kubelet.config
    if config is None:
        return 0.0
    total = sum(quantity(config.get(key, resource)) or 0.0 for key in ("kubeReserved", "systemReserved"))
    if resource == "memory":
        threshold = config.get("evictionHard", "memory.available", default="100Mi")
        total += quantity(threshold) or 0.0
    return total


def _shown(resource: str, amount: float) -> str:
    return f"{amount:.2f} CPUs" if resource == "cpu" else f"{amount / (1 << 20):.0f} MiB"
