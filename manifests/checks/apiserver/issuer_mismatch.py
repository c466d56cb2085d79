"""A certificate was not signed by the CA that those who check it trust.

Seen when pki/etcd/ca.crt was overwritten by pki/ca.crt, when a kubelet kept its certificate of an earlier cluster over
a new `kubeadm init`, and when a CA was replaced without its leafs. All kubeadm CAs are named kubernetes, etcd-ca or
front-proxy-ca, so key ids and signatures are compared, never names. One CA for everything, a bundle of several, and
intermediates beside the leaf are fine.

Fix: put the right CA back (every control plane has it), or re-issue the leafs under the CA that is meant to stay.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Fix, Severity
from manifests.node import Node
from manifests.pki.credentials import Credential, credentials
from manifests.pki.kubelet_client import superseded
from manifests.pki.trust import authorities, outdated, trusted

SEVERITY = Severity.CRITICAL
# whatever else an alien certificate says, it is replaced as a whole
EXPLAINS = (
    "node-name-mismatch",
    "cert-of-other-node",
    "san-missing-own-address",
    "san-missing-endpoint",
    "san-missing-service-address",
)


def find(node: Node) -> Iterator[Finding]:
    compared = 0
    for credential in credentials(node):
        if credential.role == "front proxy client" or _no_pair(credential) or _left_to_its_kubeconfig(node, credential):
            continue
        if superseded(node, credential):
            continue
        for path, evidence in credential.verified_by:
            try:
                roots = authorities(node, path)
            except EvidenceMissing:
                continue
            certificate = credential.certificate
            if certificate is None or credential.pem is None:
                continue
            compared += 1
            if not trusted(credential.pem, roots):
                yield Finding(
                    f"The {credential.role} certificate was not signed by {path}",
                    (
                        certificate.says(
                            f"issuer {certificate.issuer}, its key {_short(certificate.authority_key_id)}"
                        ),
                        roots[0].says(f"CN={roots[0].common_name}, key {_short(roots[0].subject_key_id)}"),
                        evidence,
                    ),
                    severity=_severity(credential),
                    layer=credential.layer,
                    fix=Fix("drtool fix issuer-mismatch", "issues the certificate anew under the CA that is trusted"),
                )
    if not compared:
        raise EvidenceMissing("no certificate with its CA in this tree")


def _no_pair(credential: Credential) -> bool:
    """A certificate beside another's key was put there by mistake: key-pair-mismatch names that."""
    keys = credential.key.private_keys if credential.key is not None else ()
    return credential.certificate is not None and bool(keys) and credential.certificate.public_key not in keys


def _left_to_its_kubeconfig(node: Node, credential: Credential) -> bool:
    """A kubeconfig whose own CA is stale is named by kubeconfig-ca-stale: it is older than the CA as a whole."""
    try:
        return credential.config is not None and outdated(node, credential.config)
    except EvidenceMissing:
        return False


def _severity(credential: Credential) -> Severity:
    """A stray copy or a health check's client is a risk; whatever stands in /etc/kubernetes breaks a part at least."""
    if credential.loss is Severity.WARNING and credential.path.startswith("/etc/kubernetes/") and credential.config:
        return Severity.ERROR
    return credential.loss


def _short(key_id: bytes) -> str:
    return key_id.hex()[:16] or "without an id"
