"""From when to when: leafs and CAs against the moment a node is judged by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Layer, Severity
from manifests.node import PKI, Node
from manifests.pki.certificates import Certificate
from manifests.pki.credentials import Credential, credentials
from manifests.pki.expected import AUTHORITIES
from manifests.pki.kubelet_client import superseded

SKEW = timedelta(minutes=5)
_CA_LAYERS = {"etcd/ca": Layer.ETCD, "ca": Layer.APISERVER, "front-proxy-ca": Layer.OBJECTS}


@dataclass(frozen=True, slots=True)
class Term:
    """One certificate with what hangs on it. `also` are further lines that show who uses it."""

    what: str
    certificate: Certificate
    loss: Severity
    layer: Layer
    also: tuple[Evidence, ...]


def leaves(node: Node) -> tuple[Term, ...]:
    """Every leaf that is in use; EvidenceMissing where the tree holds none.

    Left out: leafs under a CA that is out of its own term, which says it all, and a certificate in kubelet.conf that
    rotation has long replaced.
    """
    found = credentials(node)
    if not any(credential.certificate for credential in found):
        raise EvidenceMissing("no certificate in use in this tree")
    return tuple(_leaves(node, found))


def _leaves(node: Node, found: tuple[Credential, ...]) -> Iterator[Term]:
    out = {term.certificate.path for term in cas(node) if not _valid(node, term.certificate)}
    for credential in found:
        certificate = credential.certificate
        if certificate is None or out & {path for path, _ in credential.verified_by} or superseded(node, credential):
            continue
        also = () if credential.embedded else (credential.evidence,)
        yield Term(f"the {credential.role} certificate", certificate, credential.loss, credential.layer, also)


def cas(node: Node) -> tuple[Term, ...]:
    """kubeadm's CAs. Of a bundle the certificate that lasts longest counts: one good CA is enough to verify."""
    found = []
    for authority in AUTHORITIES:
        pem = node.pems.get(f"{PKI}/{authority.path}.crt")
        if pem is not None and pem.certificates:
            best = max(pem.certificates, key=lambda certificate: certificate.not_after)
            loss = Severity.ERROR if authority.path == "front-proxy-ca" else Severity.CRITICAL
            found.append(Term(f"the CA {authority.path}.crt", best, loss, _CA_LAYERS[authority.path], ()))
    return tuple(found)


def _valid(node: Node, certificate: Certificate) -> bool:
    return certificate.not_before - SKEW <= node.at <= certificate.not_after
