from __future__ import annotations

import base64
import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from drtool.core.errors import CannotOpen, UsageError
from snapshots import wire
from snapshots.registry import encryption, secretbox

KEY = bytes(range(32))
CONFIGURATION = """
kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: [secrets]
  providers:
  - aesgcm: {keys: [{name: new, secret: %s}, {name: old, secret: %s}]}
  - kms: {name: cloud, endpoint: unix:///run/kms.sock}
  - identity: {}
"""


def configuration(first: bytes = KEY, second: bytes = KEY[::-1]) -> encryption.Keys:
    texts = tuple(base64.b64encode(key).decode() for key in (first, second))
    return encryption.parse(CONFIGURATION % texts, "encryption.yaml")


def gcm(key: bytes, name: str, etcd_key: bytes, plain: bytes) -> bytes:
    nonce = os.urandom(12)
    return b"k8s:enc:aesgcm:v1:%s:" % name.encode() + nonce + AESGCM(key).encrypt(nonce, plain, etcd_key)


def test_aesgcm_opens_with_the_key_of_that_name() -> None:
    value = gcm(KEY[::-1], "old", b"/registry/secrets/a/b", b"plain")
    assert encryption.opened(value, b"/registry/secrets/a/b", configuration()) == b"plain"


def test_a_value_moved_to_another_key_stays_shut() -> None:
    value = gcm(KEY, "new", b"/registry/secrets/a/b", b"plain")
    with pytest.raises(encryption.Locked, match="aesgcm v1 key new, which does not open it"):
        encryption.opened(value, b"/registry/secrets/a/c", configuration())


def test_a_missing_key_is_named() -> None:
    with pytest.raises(encryption.Locked, match="aescbc v1 key other, which is not at hand"):
        encryption.opened(b"k8s:enc:aescbc:v1:other:" + bytes(48), b"/k", configuration())


def test_kms_is_named_and_locked() -> None:
    with pytest.raises(encryption.Locked, match=r"kms v2 plugin cloud \(key id key-7"):
        encryption.opened(
            b"k8s:enc:kms:v2:cloud:" + wire.field(1, b"x") + wire.field(2, b"key-7"), b"/k", configuration()
        )
    with pytest.raises(encryption.Locked, match="kms v1 plugin cloud"):
        encryption.opened(b"k8s:enc:kms:v1:cloud:" + bytes(40), b"/k", configuration())


def test_identity_is_as_it_is() -> None:
    assert encryption.opened(b"k8s\x00", b"/k", encryption.Keys()) == b"k8s\x00"


def test_damaged_aescbc_does_not_open() -> None:
    keys = encryption.Keys({("aescbc", "a"): (KEY,)})
    for size in (0, 15, 16, 31, 33):
        with pytest.raises(encryption.Locked):
            encryption.opened(b"k8s:enc:aescbc:v1:a:" + bytes(size), b"/k", keys)


def test_the_keys_are_not_in_what_is_printed() -> None:
    assert base64.b64encode(KEY).decode() not in repr(configuration()) + str(configuration())
    assert KEY.hex() not in repr(configuration())


@pytest.mark.parametrize("text", ["", "a: [", "kind: Pod", "- 1", "x" * 2_000_000])
def test_what_is_no_configuration_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match=r"^encryption\.yaml: "):
        encryption.parse(text, "encryption.yaml")


def test_a_key_of_a_wrong_size_is_named_without_its_bytes() -> None:
    with pytest.raises(CannotOpen, match="aesgcm key new: 3 bytes"):
        configuration(first=b"abc")


def test_secretbox_opens_nacl_s_own_example() -> None:
    """The example of https://cr.yp.to/highspeed/naclcrypto-20090310.pdf, sections 8 to 10: first key and stream."""
    first_key = bytes.fromhex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389")
    nonce = bytes.fromhex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37")
    stream = secretbox.keystream(first_key, nonce, 32)
    assert stream.hex() == "eea6a7251c1e72916d11c2cb214d3c252539121d8e234e652d651fa4c8cff880"


def test_secretbox_refuses_a_changed_bit_and_what_is_too_short() -> None:
    assert secretbox.opened(KEY, bytes(39)) is None
    assert secretbox.opened(KEY, bytes(80)) is None
