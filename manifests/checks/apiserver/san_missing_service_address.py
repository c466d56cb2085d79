"""The API server's certificate lacks the `kubernetes` Service's address or name.

Pods reach the API server by the first address of --service-cluster-ip-range (of its first family) and by
kubernetes.default.svc. Without them every Pod that speaks to the API is refused, the network plugin's first. Seen when
the Service range was changed without a new apiserver.crt.

Fix: delete apiserver.crt and .key, then `kubeadm init phase certs apiserver` with the range in kubeadm's configuration.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Fix, Severity
from manifests.node import Node
from manifests.pki.expected import service_address
from manifests.pki.serving import API_SERVER, serving

SEVERITY = Severity.ERROR
NAMES = ("kubernetes.default.svc",)


def find(node: Node) -> Iterator[Finding]:
    flag = node.apiserver.flag("service-cluster-ip-range")
    certificate = serving(node, API_SERVER)
    try:
        address = service_address(flag.value)
    except (ValueError, IndexError) as problem:
        raise EvidenceMissing(f"--service-cluster-ip-range={flag.value} is no range") from problem
    missing = [name for name in (address, *NAMES) if not certificate.covers(name)]
    if missing:
        yield Finding(
            f"apiserver.crt is not valid for {' and '.join(missing)}, by which Pods reach the API server",
            (certificate.says(f"names: {', '.join(certificate.names()) or 'none'}"), flag.evidence),
            fix=Fix("drtool fix san-missing-service-address", "issues apiserver.crt anew with the Service's address"),
        )
