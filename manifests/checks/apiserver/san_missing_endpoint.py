"""The API server's certificate lacks the name or address of controlPlaneEndpoint.

Everybody who comes by the endpoint is refused: "certificate is valid for ..., not NAME". It happens when the endpoint
is renamed in kubeadm's configuration without new certificates. A load balancer that ends TLS itself shows its own
certificate, and does not need the name in this one.

Fix: add the name to certSANs, delete apiserver.crt and .key, `kubeadm init phase certs apiserver` on every control
plane; `drtool move-endpoint` does it in the order that keeps old and new names working.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.kubeconfig import split_url
from manifests.network.balancer import ends_tls
from manifests.node import Node
from manifests.pki.serving import API_SERVER, serving

SEVERITY = Severity.ERROR


def find(node: Node) -> Iterator[Finding]:
    if not node.layout.control_plane:
        raise NotApplicable(f"a {node.layout} node serves no API")
    host, evidence = _endpoint(node)
    certificate = serving(node, API_SERVER)
    if ends_tls(node):
        raise NotApplicable("the load balancer on this node ends TLS itself")
    if not certificate.covers(host):
        yield Finding(
            f"apiserver.crt is not valid for the cluster's endpoint {host}",
            (certificate.says(f"names: {', '.join(certificate.names()) or 'none'}"), evidence),
            fix=Fix(
                f"drtool move-endpoint --to {host}:6443", "puts the name into every API server's certificate first"
            ),
        )


def _endpoint(node: Node) -> tuple[str, Evidence]:
    """From kubeadm's configuration, else from admin.conf. NotApplicable where the cluster has none."""
    try:
        configuration = node.cluster_configuration
    except EvidenceMissing:
        admin = node.kubeconfig("admin.conf")
        return admin.host, admin.server_evidence
    host = split_url(str(configuration.get("controlPlaneEndpoint", default="") or ""))[0]
    if not host:
        raise NotApplicable("this cluster has no controlPlaneEndpoint")
    return host, configuration.evidence("controlPlaneEndpoint")
