"""Encryption at rest: which key a value was sealed with, and opening it with the node's EncryptionConfiguration.

`k8s:enc:<provider>:v1:<key name>:` and then: aescbc IV16 + CBC with PKCS#7; aesgcm nonce12 + ciphertext + tag, the
etcd key as additional data; secretbox nonce24 + box (apiserver/pkg/storage/value/encrypt). kms needs the plugin's
own key service: such values are named and stay shut. Keys never leave this module by print or repr.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from drtool.core.errors import CannotOpen, UsageError
from snapshots import wire
from snapshots.registry import secretbox

PREFIX = b"k8s:enc:"
LONGEST_HEADER = 512
AES_SIZES, IV, NONCE = (16, 24, 32), 16, 12
PROVIDERS = ("aescbc", "aesgcm", "secretbox")
LARGEST_CONFIGURATION = 1 << 20


class Locked(Exception):
    """The value is encrypted and cannot be opened here; says by what and why."""


class Seal(NamedTuple):
    """How a value is encrypted: `aescbc`, `v1`, the key's (or the KMS plugin's) name; `content` begins after that."""

    provider: str
    version: str
    key: str
    content: int

    def __str__(self) -> str:
        return f"{self.provider} {self.version} {'plugin' if self.provider == 'kms' else 'key'} {self.key}"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of an EncryptionConfiguration by provider and name; several where resources have lists of their own."""

    secrets: dict[tuple[str, str], tuple[bytes, ...]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.secrets)

    def names(self) -> tuple[str, ...]:
        return tuple(f"{provider} key {name}" for provider, name in self.secrets)


def seal(value: bytes) -> Seal | None:
    """None for a value that is not encrypted. Raises Locked for a prefix that names no provider."""
    if not value.startswith(PREFIX):
        return None
    parts = value[len(PREFIX) : LONGEST_HEADER].split(b":", 3)
    if len(parts) < 4:
        raise Locked("encrypted, by a provider that its first bytes do not name")
    provider, version, key = (part.decode("utf-8", "backslashreplace") for part in parts[:3])
    return Seal(provider, version, key, len(PREFIX) + sum(len(part) + 1 for part in parts[:3]))


def opened(value: bytes, etcd_key: bytes, keys: Keys) -> bytes:
    """The plain value; `value` itself where it is not encrypted. Raises Locked."""
    found = seal(value)
    if found is None:
        return value
    content = value[found.content :]
    if found.provider == "kms":
        raise Locked(f"encrypted by {found}{_key_id(content, found)}: only its key service opens it")
    if found.provider not in PROVIDERS:
        raise Locked(f"encrypted by {found}, a provider that drtool does not know")
    secrets = keys.secrets.get((found.provider, found.key), ())
    for secret in secrets:
        plain = _open(found.provider, secret, content, etcd_key)
        if plain is not None:
            return plain
    raise Locked(f"encrypted by {found}, which " + ("does not open it" if secrets else "is not at hand"))


def _open(provider: str, secret: bytes, content: bytes, etcd_key: bytes) -> bytes | None:
    """None where the key is wrong or the value damaged: the two look alike."""
    if provider == "secretbox":
        return secretbox.opened(secret, content)
    return _gcm(secret, content, etcd_key) if provider == "aesgcm" else _cbc(secret, content)


def _gcm(secret: bytes, content: bytes, etcd_key: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(content) < NONCE:
        return None
    try:
        return AESGCM(secret).decrypt(content[:NONCE], content[NONCE:], etcd_key)
    except InvalidTag:
        return None


def _cbc(secret: bytes, content: bytes) -> bytes | None:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    iv, sealed = content[:IV], content[IV:]
    if len(iv) < IV or not sealed or len(sealed) % IV:
        return None
    decryptor = Cipher(algorithms.AES(secret), modes.CBC(iv)).decryptor()
    plain = decryptor.update(sealed) + decryptor.finalize()
    padding = plain[-1]
    if not 0 < padding <= IV or plain[-padding:] != bytes([padding]) * padding:
        return None
    return plain[:-padding]


def _key_id(content: bytes, found: Seal) -> str:
    """KMS v2 writes an EncryptedObject whose field 2 is the key's id at the service."""
    if found.version != "v2":
        return ""
    try:
        key_id = dict(wire.fields(content)).get(2)
    except wire.Malformed:
        return ""
    return f" (key id {key_id.decode('utf-8', 'backslashreplace')})" if isinstance(key_id, bytes) else ""


def parse(text: str, name: str) -> Keys:
    """An EncryptionConfiguration's keys. Raises UsageError where `name` is none, CannotOpen where a key is unusable."""
    hint = "give the file that kube-apiserver's --encryption-provider-config names"
    if len(text) > LARGEST_CONFIGURATION:
        raise UsageError(f"{name}: too large for an EncryptionConfiguration", hint)
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    except yaml.YAMLError as wrong:
        raise UsageError(f"{name}: no YAML: {' '.join(str(wrong).split())}", hint) from wrong
    if not isinstance(document, dict) or document.get("kind") != "EncryptionConfiguration":
        raise UsageError(f"{name}: no EncryptionConfiguration", hint)
    secrets: dict[tuple[str, str], tuple[bytes, ...]] = {}
    for provider, key, secret in _listed(document):
        have = secrets.get((provider, key), ())
        secrets[provider, key] = (*have, _secret(provider, key, secret, name)) if secret else have
    return Keys(secrets)


def _listed(document: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for resource in _dicts(document.get("resources")):
        for provider in _dicts(resource.get("providers")):
            for kind in PROVIDERS:
                for key in _dicts((provider.get(kind) or {}).get("keys")):
                    yield kind, str(key.get("name", "")), str(key.get("secret") or "")


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _secret(provider: str, key: str, secret: str, name: str) -> bytes:
    sizes = (secretbox.KEY,) if provider == "secretbox" else AES_SIZES
    try:
        raw = base64.b64decode(secret, validate=True)
    except binascii.Error as wrong:
        raise CannotOpen(f"{name}: {provider} key {key}: its secret is no base64") from wrong
    if len(raw) not in sizes:
        raise CannotOpen(f"{name}: {provider} key {key}: {len(raw)} bytes, not {' or '.join(map(str, sizes))}")
    return raw
