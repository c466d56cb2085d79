"""Issues keys and certificates as kubeadm does: leafs live one year, CAs ten, each from five minutes ago."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from manifests.pki.expected import CLIENT, SERVER, is_address

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
LEAF_LIFE, CA_LIFE = timedelta(days=365), timedelta(days=3650)
SKEW = timedelta(minutes=5)
_USAGES = {SERVER: ExtendedKeyUsageOID.SERVER_AUTH, CLIENT: ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True, slots=True)
class Issued:
    certificate: x509.Certificate
    key: PrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return private_pem(self.key)


def new_key(algorithm: str = "RSA-2048") -> PrivateKey:
    """One of the algorithms that kubeadm's `encryptionAlgorithm` names."""
    if algorithm == "ECDSA-P256":
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=int(algorithm.partition("-")[2]))


def private_pem(key: PrivateKey) -> bytes:
    """PKCS#1 or SEC 1, as kubeadm writes keys."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def public_pem(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def load_private(pem: bytes) -> PrivateKey:
    """ValueError or TypeError where it is no RSA or EC key that can be read."""
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise TypeError(f"a {type(key).__name__} cannot sign for kubeadm's PKI")
    return key


def issue_authority(common_name: str, now: datetime, key: PrivateKey) -> Issued:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = _builder(name, name, key, now - SKEW, now + CA_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(common_name)]), critical=False)
    return Issued(builder.sign(key, hashes.SHA256()), key)


def issue(
    authority: Issued,
    common_name: str,
    usages: Iterable[str],
    now: datetime,
    key: PrivateKey,
    organizations: Iterable[str] = (),
    names: Iterable[str] = (),
    life: timedelta = LEAF_LIFE,
) -> Issued:
    """A leaf that never outlives its CA."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    ca = authority.certificate
    not_before = max(ca.not_valid_before_utc, now - SKEW)
    builder = _builder(subject, ca.subject, key, not_before, min(now + life, ca.not_valid_after_utc))
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([_USAGES[usage] for usage in usages]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_authority_key(ca), critical=False)
    if alternatives := [_general(name) for name in names]:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return Issued(builder.sign(authority.key, hashes.SHA256()), key)


def request(common_name: str, key: PrivateKey, organizations: Iterable[str] = (), names: Iterable[str] = ()) -> bytes:
    """A PKCS#10 signing request as PEM, for a CA whose key is elsewhere."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if alternatives := [_general(name) for name in names]:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _authority_key(ca: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        own = ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key = ca.public_key()
        if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
            raise ValueError("the CA's key is of a kind that cannot sign here") from None
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _key_usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    return x509.IPAddress(ip_address(name)) if is_address(name) else x509.DNSName(name)
