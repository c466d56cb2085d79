"""Ed25519 signatures over records: `openssl pkeyutl -verify -rawin` checks them too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from drtool.core.errors import CannotOpen, UsageError
from drtool.host.reading import small

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


def private_key(path: Path) -> Ed25519PrivateKey:
    """A PEM (PKCS#8) or OpenSSH private key without a passphrase. Raises UsageError."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    pem = _read(path)
    load = serialization.load_ssh_private_key if b"OPENSSH" in pem else serialization.load_pem_private_key
    try:
        key = load(pem, None)
    except (ValueError, TypeError) as wrong:
        raise UsageError(
            f"{path} holds no private key that can be used", "make one: openssl genpkey -algorithm ed25519"
        ) from wrong
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{path} is no Ed25519 key", "make one: openssl genpkey -algorithm ed25519")
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """The public key in a PEM file, or the public half of a private one. Raises UsageError."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    pem = _read(path)
    if b"PRIVATE KEY" in pem:
        return private_key(path).public_key()
    load = serialization.load_ssh_public_key if pem.startswith(b"ssh-") else serialization.load_pem_public_key
    try:
        key = load(pem)
    except ValueError as wrong:
        raise UsageError(f"{path} holds no public key") from wrong
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{path} is no Ed25519 key")
    return key


def fingerprint(key: Ed25519PublicKey) -> str:
    """SHA-256 of the raw public key, lower hex: names a signer in records."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def verify(data: bytes, signature: bytes | None, trusted: Iterable[Ed25519PublicKey], name: str) -> str:
    """The fingerprint of the trusted key that signed `data`; raises CannotOpen where none did."""
    from cryptography.exceptions import InvalidSignature

    if signature is None:
        raise CannotOpen(
            f"{name} has no signature", "a trusted key is configured, so an unsigned backup is not believed"
        )
    for key in trusted:
        try:
            key.verify(signature, data)
        except InvalidSignature:
            continue
        return fingerprint(key)
    raise CannotOpen(f"{name} is not signed by a trusted key", "it was changed, or written by somebody else")


def _read(path: Path) -> bytes:
    try:
        return small(path)
    except OSError as gone:
        raise UsageError(f"{path}: {gone.strerror}") from gone
