"""A certificate and its private key are not a pair.

The program that reads them exits with "tls: private key does not match public key". A running API server keeps the pair
that it has until it restarts, so the outage may come long after the edit. Looked at: every pair that a flag or a
kubeconfig names, and the CAs with their keys; a certificate in a key's place, too.

Fix: put the half that belongs to it back from a backup, or issue the pair anew.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Fix, Layer, Severity
from manifests.node import PKI, Node
from manifests.pki.credentials import Credential, credentials, private_half
from manifests.pki.expected import AUTHORITIES
from manifests.pki.trust import trusted

SEVERITY = Severity.CRITICAL
FIX = Fix("drtool fix key-pair-mismatch", "issues the pair anew with the same names")


def find(node: Node) -> Iterator[Finding]:
    compared = 0
    found = credentials(node)
    for credential in found:
        certificate, key = credential.certificate, credential.key
        yield from _swapped(credential)
        if certificate is None or key is None or not key.private_keys or not certificate.public_key:
            continue
        compared += 1
        if key.private_keys[0] != certificate.public_key:
            where = "holds" if credential.key_path == credential.path else f"and {credential.key_path} hold"
            yield _unpaired(
                credential,
                f"{credential.path} {where} a certificate and a key that are no pair ({credential.role})",
                certificate.says(f"public key {certificate.public_key[:16]}"),
            )
    yield from _authorities(node, found)
    if not compared:
        raise EvidenceMissing("no certificate with its key in this tree")


def _swapped(credential: Credential) -> Iterator[Finding]:
    """Go: "found a certificate rather than a key in the PEM". A block that cannot be read has a check of its own."""
    pem, key = credential.pem, credential.key
    if pem is not None and pem.private_keys and not pem.certificates and not pem.problem:
        title = f"{credential.path} holds a key and no certificate ({credential.role})"
        yield _unpaired(credential, title, Evidence(credential.path))
    if key is not None and key.certificates and not key.private_keys and not key.problem:
        title = f"{credential.key_path} holds a certificate and no private key ({credential.role})"
        yield _unpaired(credential, title, Evidence(credential.key_path))


def _unpaired(credential: Credential, title: str, evidence: Evidence) -> Finding:
    return Finding(
        title,
        (evidence, credential.evidence),
        severity=max(credential.loss, Severity.ERROR) if credential.config else credential.loss,
        layer=credential.layer,
        fix=FIX,
    )


def _authorities(node: Node, found: tuple[Credential, ...]) -> Iterator[Finding]:
    """One certificate of a bundle is enough. A CA that does not fit its leafs either is named by issuer-mismatch."""
    for authority in AUTHORITIES:
        path = f"{PKI}/{authority.path}.crt"
        pem, key = node.pems.get(path), private_half(node, path.removesuffix(".crt") + ".key")
        if pem is None or not pem.certificates or key is None or not key.private_keys:
            continue
        of_it = [c for c in found if c.pem is not None and c.pem.certificates and path in dict(c.verified_by)]
        fits = all(trusted(credential.pem, pem.certificates) for credential in of_it if credential.pem)
        if fits and key.private_keys[0] not in {certificate.public_key for certificate in pem.certificates}:
            yield Finding(
                f"{path} and its .key are no pair: nothing can be signed",
                (pem.certificates[0].says(f"public key {pem.certificates[0].public_key[:16]}"),),
                layer=Layer.CONTROLLERS,
            )
