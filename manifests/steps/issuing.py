"""Steps that issue certificates from a CA whose key is on the node."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from drtool.core.errors import Refused
from drtool.core.plan import Ahead
from drtool.host.machine import Host, lost
from manifests.editing import Edit, Set, changed, edit
from manifests.pki.certificates import UNREADABLE
from manifests.pki.issuing import Issued, PrivateKey, issue, load_private, new_key, private_pem, request

LINK = "kubelet-link"


@dataclass(frozen=True, slots=True)
class Signer:
    """A CA's certificate and key on the node."""

    certificate: str
    key: str

    def load(self, host: Host) -> Issued:
        """Raises Refused where they are not a pair, or one of them cannot be read."""
        try:
            certificate = x509.load_pem_x509_certificate(host.read(self.certificate))
            key = load_private(host.read(self.key))
        except (OSError, *UNREADABLE) as broken:
            raise Refused(f"the CA {self.certificate} with {self.key} cannot sign: {broken}") from broken
        if not _is_pair(certificate, key):
            raise Refused(f"{self.key} is not the key of {self.certificate}", "look for the right CA key in a backup")
        return Issued(certificate, key)


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a leaf is for: SANs only where it serves."""

    common_name: str
    usages: tuple[str, ...]
    organizations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IssueCertificate:
    """A leaf issued anew, for the key that is there, or for a new one where there is none that can be read."""

    path: str
    key: str
    signer: Signer
    subject: Subject

    def describe(self) -> str:
        names = f" for {', '.join(self.subject.names)}" if self.subject.names else f" for {self.subject.common_name}"
        return f"issue {self.path} anew{names}, signed by {self.signer.certificate}"

    def apply(self, host: Host) -> None:
        signer = self.signer.load(host)
        host.keep(self.path)
        host.keep(self.key)
        key = _existing_key(host, self.key)
        issued = _issue(host, signer, self.subject, key or new_key(_algorithm(signer)))
        if key is None:
            host.replace(self.key, issued.key_pem, 0o600)
        host.replace(self.path, issued.certificate_pem, None if host.exists(self.path) else 0o644)

    def revert(self, host: Host) -> None:
        host.put_back(self.key)
        host.put_back(self.path)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        host.foresee_put_back(self.key, ahead, complete)
        host.foresee_put_back(self.path, ahead, complete)


@dataclass(frozen=True, slots=True)
class RequestCertificate:
    """A signing request for the holder of the CA, with the key that is there (a new one where there is none)."""

    path: str
    key: str
    subject: Subject

    def describe(self) -> str:
        return f"write the signing request {self.path} for {', '.join(self.subject.names) or self.subject.common_name}"

    def apply(self, host: Host) -> None:
        host.keep(self.path)
        host.keep(self.key)
        key = _existing_key(host, self.key)
        if key is None:
            key = new_key()
            host.replace(self.key, private_pem(key), 0o600)
        host.replace(
            self.path, request(self.subject.common_name, key, self.subject.organizations, self.subject.names), 0o644
        )

    def revert(self, host: Host) -> None:
        host.put_back(self.key)
        host.put_back(self.path)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        host.foresee_put_back(self.key, ahead, complete)
        host.foresee_put_back(self.path, ahead, complete)


@dataclass(frozen=True, slots=True)
class IssueKubeconfig:
    """The client certificate inside a kubeconfig issued anew, and the CA that it trusts made the cluster's own."""

    path: str
    cluster: int
    user: int
    signer: Signer
    subject: Subject
    server: str = ""

    def describe(self) -> str:
        server = f", pointing to {self.server}" if self.server else ""
        return f"issue the client certificate in {self.path} anew for {self.subject.common_name}{server}"

    def apply(self, host: Host) -> None:
        signer = self.signer.load(host)
        host.keep(self.path)
        issued = _issue(host, signer, self.subject, new_key(_algorithm(signer)))
        data = host.read(self.path)
        user, cluster = ("users", self.user, "user"), ("clusters", self.cluster, "cluster")
        ca = host.read(self.signer.certificate)
        edits: list[Edit] = [
            Set((*user, "client-certificate-data"), _encoded(issued.certificate_pem)),
            Set((*user, "client-key-data"), _encoded(issued.key_pem)),
            Set((*cluster, "certificate-authority-data"), _encoded(ca)),
        ]
        if self.server:
            edits.append(Set((*cluster, "server"), self.server))
        host.replace(self.path, changed(data, edit(self.path, data, edits)))

    def revert(self, host: Host) -> None:
        host.put_back(self.path)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        host.foresee_put_back(self.path, ahead, complete)


@dataclass(frozen=True, slots=True)
class IssueKubeletClient:
    """A new client certificate for the kubelet in a file of its own, and the link that kubelet.conf names set to it."""

    link: str
    file: str
    signer: Signer
    subject: Subject

    def describe(self) -> str:
        return f"issue {self.file} for {self.subject.common_name} and point {self.link} to it"

    def apply(self, host: Host) -> None:
        signer = self.signer.load(host)
        if host.remembered(LINK) is None:
            target = host.link_target(self.link)
            if not target:
                host.keep(self.link)
            host.remember(LINK, target.encode())
        host.keep(self.file)
        issued = _issue(host, signer, self.subject, new_key(_algorithm(signer)))
        host.replace(self.file, issued.certificate_pem + issued.key_pem, 0o600)
        host.link(self.link, self.file)

    def revert(self, host: Host) -> None:
        target = host.remembered(LINK)
        if target:
            host.link(self.link, target.decode())
        elif target is not None:
            host.put_back_over_link(self.link)
        host.put_back(self.file)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        target = host.remembered(LINK)
        if target is None and complete:
            raise lost(host.memory(LINK))
        if target == b"":
            host.foresee_put_back(self.link, ahead, complete)
        host.foresee_put_back(self.file, ahead, complete)


def _issue(host: Host, signer: Issued, subject: Subject, key: PrivateKey) -> Issued:
    now = datetime.fromtimestamp(host.clock.now(), UTC)
    return issue(signer, subject.common_name, subject.usages, now, key, subject.organizations, subject.names)


def _algorithm(signer: Issued) -> str:
    """New keys are of the CA's kind: kubeadm's `encryptionAlgorithm` is one for all."""
    return "ECDSA-P256" if isinstance(signer.key, ec.EllipticCurvePrivateKey) else "RSA-2048"


def _existing_key(host: Host, path: str) -> PrivateKey | None:
    if not host.exists(path):
        return None
    try:
        return load_private(host.read(path))
    except (OSError, ValueError, TypeError):
        return None


def _is_pair(certificate: x509.Certificate, key: PrivateKey) -> bool:
    return _public(certificate.public_key()) == _public(key.public_key())


def _public(key: object) -> bytes:
    encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    found: bytes = key.public_bytes(encoding, form)  # type: ignore[attr-defined]
    return found


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
