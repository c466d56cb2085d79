"""The front proxy's client certificate must come from the CA that extension API servers are told to trust.

The API server presents it to metrics servers and other aggregated APIs, which know --requestheader-client-ca-file and
the names in --requestheader-allowed-names from a ConfigMap. When they do not fit, `kubectl top` and autoscaling fail
and namespaces hang in Terminating. It is never the cause of an outage of the core API.

Fix: delete front-proxy-client.crt and .key, then `kubeadm init phase certs front-proxy-client`.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Layer, Severity
from manifests.node import Node
from manifests.peers import same_cluster
from manifests.pki.certificates import Certificate, Pem
from manifests.pki.credentials import Credential, credentials
from manifests.pki.trust import authorities, trusted

SEVERITY = Severity.ERROR
FIX = Fix("drtool fix front-proxy-pair", "issues the front proxy's client certificate anew under its CA")


def find(case: Case) -> Iterator[Finding]:
    node = case.node
    proxy = _proxy(node)
    certificate = proxy.certificate
    if certificate is None or proxy.pem is None:
        raise EvidenceMissing(f"{proxy.path} is not in this tree")
    allowed = node.apiserver.names("requestheader-allowed-names")
    if allowed and certificate.common_name not in allowed:
        flag = node.apiserver.flag("requestheader-allowed-names")
        title = f"{proxy.path} is for {certificate.common_name}, which --requestheader-allowed-names does not allow"
        yield _finding(title, certificate, flag.evidence)
    yield from _unsigned(proxy.pem, proxy, node, "")
    for other in same_cluster(node, case.others):
        try:
            yield from _unsigned(proxy.pem, _proxy(other), other, f" of {other.name}")
        except (EvidenceMissing, NotApplicable):
            continue


def _proxy(node: Node) -> Credential:
    node.apiserver.flag("proxy-client-cert-file")
    return next(c for c in credentials(node) if c.role == "front proxy client")


def _unsigned(pem: Pem, verifier: Credential, node: Node, whose: str) -> Iterator[Finding]:
    """The certificate against the CA that an API server publishes for extension servers."""
    for path, evidence in verifier.verified_by:
        roots = authorities(node, path)
        if not trusted(pem, roots):
            certificate = pem.certificates[0]
            yield _finding(f"{pem.path} was not signed by {path}{whose}", certificate, roots[0].evidence, evidence)


def _finding(title: str, certificate: Certificate, *against: Evidence) -> Finding:
    evidence = (certificate.says(f"CN={certificate.common_name}, issuer {certificate.issuer}"), *against)
    return Finding(title, evidence, layer=Layer.OBJECTS, fix=FIX)
