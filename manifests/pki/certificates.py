"""Certificates and keys as files hold them: PEM read as leniently as Go reads it, every name and date kept."""

from __future__ import annotations

import base64
import hashlib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import NameOID

from drtool.core.report import Evidence

WITHHELD, CANNOT_BE_READ = "WITHHELD ", " cannot be read: "
BEGIN = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,60})-----\r?\n")

# of a serial number of 0, say; it would stand on stderr in the middle of an outage
warnings.filterwarnings("ignore", category=CryptographyDeprecationWarning)

UNREADABLE = (
    ValueError,  # binascii.Error is one
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What cryptography raises for bytes that are no certificate or key, or none that it knows."""


@dataclass(frozen=True)
class Certificate:
    """One certificate of a file. `line` is where its PEM block begins; dates are UTC."""

    path: str
    line: int | None
    x509: x509.Certificate = field(repr=False)

    @cached_property
    def subject(self) -> str:
        return self.x509.subject.rfc4514_string()

    @cached_property
    def common_name(self) -> str:
        return _attribute(self.x509.subject, NameOID.COMMON_NAME)

    @cached_property
    def organizations(self) -> tuple[str, ...]:
        return tuple(str(a.value) for a in self.x509.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))

    @cached_property
    def issuer(self) -> str:
        return _attribute(self.x509.issuer, NameOID.COMMON_NAME) or self.x509.issuer.rfc4514_string()

    @property
    def not_before(self) -> datetime:
        return self.x509.not_valid_before_utc

    @property
    def not_after(self) -> datetime:
        return self.x509.not_valid_after_utc

    @cached_property
    def dns_names(self) -> tuple[str, ...]:
        return tuple(str(name) for name in self._names(x509.DNSName))

    @cached_property
    def addresses(self) -> tuple[IPv4Address | IPv6Address, ...]:
        return tuple(name for name in self._names(x509.IPAddress) if isinstance(name, IPv4Address | IPv6Address))

    def _names(self, kind: type[Any]) -> list[Any]:
        found = self._extension(x509.SubjectAlternativeName)
        return list(found.get_values_for_type(kind)) if found is not None else []

    def _extension(self, kind: type[Any]) -> Any:
        try:
            return self.x509.extensions.get_extension_for_class(kind).value
        except (x509.ExtensionNotFound, *UNREADABLE):
            return None

    @cached_property
    def is_ca(self) -> bool:
        constraints = self._extension(x509.BasicConstraints)
        return bool(constraints is not None and constraints.ca)

    @cached_property
    def subject_key_id(self) -> bytes:
        found = self._extension(x509.SubjectKeyIdentifier)
        return bytes(found.digest) if found is not None else b""

    @cached_property
    def authority_key_id(self) -> bytes:
        found = self._extension(x509.AuthorityKeyIdentifier)
        return bytes(found.key_identifier or b"") if found is not None else b""

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the whole certificate, in hex."""
        return hashlib.sha256(self.x509.public_bytes(serialization.Encoding.DER)).hexdigest()

    @cached_property
    def public_key(self) -> str:
        """SHA-256 of the SubjectPublicKeyInfo, in hex: equal for a certificate and its key."""
        try:
            return _spki(self.x509.public_key())
        except UNREADABLE:
            return ""

    def covers(self, name: str) -> bool:
        """Whether a client that dials this address or DNS name accepts the certificate, by Go's rules.

        The common name never counts; a wildcard stands for exactly one leftmost label.
        """
        try:
            return ip_address(name.strip("[]")) in self.addresses
        except ValueError:
            pass
        wanted = name.rstrip(".").lower()
        for pattern in (dns.rstrip(".").lower() for dns in self.dns_names):
            if pattern == wanted:
                return True
            if pattern.startswith("*.") and "." in wanted and pattern[1:] == wanted[wanted.index(".") :]:
                return True
        return False

    def issued_by(self, ca: Certificate) -> bool:
        """Whether the CA's key made this signature; names alone prove nothing (kubeadm's CAs are all CN=kubernetes)."""
        if self.x509.issuer != ca.x509.subject:
            return False
        try:
            _verify(self.x509, ca.x509.public_key())
        except (InvalidSignature, *UNREADABLE):
            return False
        return True

    def names(self) -> tuple[str, ...]:
        return (*self.dns_names, *(str(address) for address in self.addresses))

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.path, self.line, f"CN={self.common_name}")

    def says(self, text: str) -> Evidence:
        return Evidence(self.path, self.line, text)


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a PEM file: `data[start:end]`, with what lies between its two lines."""

    start: int
    end: int
    label: str
    body: bytes


def blocks(data: bytes) -> Iterator[Block]:
    """Every block that is closed by its own label; in time that grows with the file only, whatever is in it."""
    at = 0
    unclosed: set[bytes] = set()
    while match := BEGIN.search(data, at):
        at = match.end()
        closing = b"-----END " + match[1] + b"-----"
        end = -1 if match[1] in unclosed else data.find(closing, at)
        if end < 0:
            unclosed.add(match[1])
            continue
        yield Block(match.start(), end + len(closing), match[1].decode("ascii"), data[at:end])
        at = end + len(closing)


@dataclass(frozen=True, slots=True)
class Pem:
    """What a PEM file holds.

    Keys are the SHA-256 of their public halves; `problem` says why a block could not be read.
    """

    path: str
    certificates: tuple[Certificate, ...] = ()
    private_keys: tuple[str, ...] = ()
    public_keys: tuple[str, ...] = ()
    problem: str = ""


def read_pem(path: str, data: bytes, line: int | None = None) -> Pem:
    """Every block of a file; text around the blocks and CRLF line ends are fine, as for Go."""
    certificates: list[Certificate] = []
    private: list[str] = []
    public: list[str] = []
    problem = "" if data.strip() else "the file is empty"
    found, at, here = False, 0, 1
    for block in blocks(data):
        found, label = True, block.label
        here += data.count(b"\n", at, block.start)
        at = block.start
        place = line if line is not None else here
        try:
            der = base64.b64decode(_body(block.body), validate=True)
            if label in {"CERTIFICATE", "TRUSTED CERTIFICATE"}:
                certificates.append(_certificate(path, place, der))
            elif label.startswith(WITHHELD):
                label = label.removeprefix(WITHHELD)
                private.append(_kept(der))
            elif label.endswith("PRIVATE KEY"):
                private.append(_private(label, der))
            elif label.endswith("PUBLIC KEY"):
                public.append(_public(label, der))
        except UNREADABLE as error:
            problem = problem or f"the {label} block at line {place}{CANNOT_BE_READ}{_short(error)}"
    if not found and not problem:
        problem = "no PEM block in it"
    return Pem(path, tuple(certificates), tuple(private), tuple(public), problem)


def _body(text: bytes) -> bytes:
    """The base64 of a block without white space and without the headers of encrypted keys."""
    lines = [part.strip() for part in text.splitlines()]
    return b"".join(part for part in lines if part and b":" not in part)


def _certificate(path: str, line: int | None, der: bytes) -> Certificate:
    certificate = x509.load_der_x509_certificate(der)
    found = Certificate(path, line, certificate)
    # what cannot be decoded is said here, not in a check
    _ = found.subject, found.organizations, found.issuer, found.dns_names, found.not_before, found.not_after
    return found


def withheld_block(label: str, read: Pem) -> bytes:
    """What stands for a private key in a bundle: a block from which `read_pem` learns what it learned from the key."""
    said = read.private_keys[0] if read.private_keys else "!" + read.problem.partition(CANNOT_BE_READ)[2]
    body = base64.b64encode(said.encode())
    return b"-----BEGIN %b-----\n%b\n-----END %b-----" % (name := (WITHHELD + label).encode(), body, name)


def _kept(said: bytes) -> str:
    """The public half's SHA-256, or ValueError with what was wrong with the key."""
    text = said.decode("utf-8", "replace")
    if re.fullmatch(r"[0-9a-f]{64}", text):
        return text
    raise ValueError(text.removeprefix("!"))


def certificate_of(place: str, der: bytes) -> Certificate | None:
    """A certificate that was served rather than read from a file; None for what cannot be decoded."""
    try:
        return _certificate(place, None, der)
    except UNREADABLE:
        return None


def _private(label: str, der: bytes) -> str:
    if "ENCRYPTED" in label:
        raise ValueError("the key is encrypted")
    pem = f"-----BEGIN {label}-----\n".encode() + base64.encodebytes(der) + f"-----END {label}-----\n".encode()
    key = serialization.load_pem_private_key(pem, None, unsafe_skip_rsa_key_validation=True)
    return _spki(key.public_key())


def _public(label: str, der: bytes) -> str:
    if label == "RSA PUBLIC KEY":
        pem = b"-----BEGIN RSA PUBLIC KEY-----\n" + base64.encodebytes(der) + b"-----END RSA PUBLIC KEY-----\n"
        return _spki(serialization.load_pem_public_key(pem))
    return _spki(serialization.load_der_public_key(der))


def _spki(key: Any) -> str:
    data = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(data).hexdigest()


def _verify(certificate: x509.Certificate, key: Any) -> None:
    signature, signed = certificate.signature, certificate.tbs_certificate_bytes
    algorithm = certificate.signature_hash_algorithm
    if isinstance(key, rsa.RSAPublicKey) and algorithm is not None:
        parameters = certificate.signature_algorithm_parameters
        if not isinstance(parameters, padding.PSS | padding.PKCS1v15):
            raise ValueError("signature parameters")
        key.verify(signature, signed, parameters, algorithm)
    elif isinstance(key, ec.EllipticCurvePublicKey) and algorithm is not None:
        key.verify(signature, signed, ec.ECDSA(algorithm))
    elif isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
        key.verify(signature, signed)
    else:
        raise ValueError("key type")


def _attribute(name: x509.Name, oid: x509.ObjectIdentifier) -> str:
    found = name.get_attributes_for_oid(oid)
    return str(found[0].value) if found else ""


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__


def utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
