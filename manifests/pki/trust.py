"""Who signed what: certificates against the CA files of those who check them.

Key ids decide where both sides carry one, a signature only where they leave doubt. Names never do: every cluster that
kubeadm made has a CA called "kubernetes".
"""

from __future__ import annotations

from collections.abc import Iterable

from drtool.core.check import EvidenceMissing
from manifests.kubeconfig import Kubeconfig
from manifests.node import Node
from manifests.pki.certificates import Certificate, Pem
from manifests.pki.credentials import CLUSTER_CA

DEPTH = 5


def signed_by(certificate: Certificate, ca: Certificate) -> bool:
    if certificate.x509.issuer != ca.x509.subject:
        return False
    wanted, offered = certificate.authority_key_id, ca.subject_key_id
    if wanted and offered:
        return wanted == offered
    return certificate.issued_by(ca)


def trusted(chain: Pem, roots: Iterable[Certificate]) -> bool:
    """Whether the first certificate leads to a root, over the intermediates that are presented with it (as Go does)."""
    known = tuple(roots)
    return bool(chain.certificates) and _leads(chain.certificates[0], chain.certificates[1:], known, DEPTH)


def _leads(
    certificate: Certificate, presented: tuple[Certificate, ...], roots: tuple[Certificate, ...], depth: int
) -> bool:
    if any(certificate.x509 == root.x509 or signed_by(certificate, root) for root in roots):
        return True
    between = (other for other in presented if other is not certificate and signed_by(certificate, other))
    return depth > 0 and any(_leads(other, presented, roots, depth - 1) for other in between)


def authorities(node: Node, path: str) -> tuple[Certificate, ...]:
    """Every certificate of a CA file; EvidenceMissing where there is none to compare with."""
    found = node.pem(path).certificates
    if not found:
        raise EvidenceMissing(f"{path}: {node.pem(path).problem or 'no certificate in it'}")
    return found


def outdated(node: Node, config: Kubeconfig) -> bool:
    """Whether a kubeconfig trusts none of the cluster's CAs of today, so that its client refuses the API server.

    A kubeconfig whose CA still signed the serving certificate is not the odd one: then the CA file is.
    """
    if config.ca is None or not config.ca.certificates:
        return False
    ours = {certificate.public_key for certificate in config.ca.certificates}
    if ours & {certificate.public_key for certificate in authorities(node, CLUSTER_CA)}:
        return False
    apiserver = node.components.get("kube-apiserver")
    if apiserver is None or not apiserver.has("tls-cert-file"):
        return True
    served = apiserver.flag("tls-cert-file").value
    try:
        return not trusted(node.pem(apiserver.container.host_path(served) or served), config.ca.certificates)
    except EvidenceMissing:
        return True
