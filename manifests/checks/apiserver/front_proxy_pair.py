"""The front proxy's client certificate must come from the CA that extension API servers are told to trust.

The API server presents it to metrics servers and other aggregated APIs, which know --requestheader-client-ca-file and
the names in --requestheader-allowed-names from a ConfigMap. When they do not fit, `kubectl top` and autoscaling fail
and namespaces hang in Terminating. It is never the cause of an outage of the core API.

Fix: delete front-proxy-client.crt and .key, then `kubeadm init phase certs front-proxy-client`.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Fix, Layer, Severity
from manifests.credentials import Credential, credentials
from manifests.node import Node
from manifests.trust import authorities, trusted

SEVERITY = Severity.ERROR
FIX = Fix("drtool fix front-proxy-pair", "issues the front proxy's client certificate anew under its CA")


def find(node: Node) -> Iterator[Finding]:
    proxy = _proxy(node)
    certificate = proxy.certificate
    if certificate is None or proxy.pem is None:
        raise EvidenceMissing(f"{proxy.path} is not in this tree")
    allowed = node.apiserver.names("requestheader-allowed-names")
    if allowed and certificate.common_name not in allowed:
        yield Finding(
            f"{proxy.path} is for {certificate.common_name}, which --requestheader-allowed-names does not allow",
            (certificate.evidence, node.apiserver.flag("requestheader-allowed-names").evidence),
            layer=Layer.OBJECTS,
            fix=FIX,
        )
    for path, evidence in proxy.verified_by:
        roots = authorities(node, path)
        if not trusted(proxy.pem, roots):
            yield Finding(
                f"{proxy.path} was not signed by {path}",
                (certificate.says(f"issuer {certificate.issuer}"), roots[0].evidence, evidence),
                layer=Layer.OBJECTS,
                fix=FIX,
            )


def _proxy(node: Node) -> Credential:
    node.apiserver.flag("proxy-client-cert-file")
    return next(c for c in credentials(node) if c.role == "front proxy client")
