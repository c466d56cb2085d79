"""encryption-keys-vs-data: what etcd's values are sealed with against the API server's configuration."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from drtool.checks import Case
from drtool.checks.apiserver.encryption_keys_vs_data import find
from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding
from snapshots.contents import Sealed
from tests.builders.data import data
from tests.builders.tree import Tree, laid

PATH = "/etc/kubernetes/pki/encryption.yaml"
KEY, OTHER = b"k" * 32, b"o" * 32
CONFIGURATION = """apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [{resources}]
  providers:
{providers}
"""


def provider(name: str = "key1", secret: bytes = KEY, kind: str = "aescbc") -> str:
    text = base64.b64encode(secret).decode()
    return f"  - {kind}:\n      keys:\n      - name: {name}\n        secret: {text}\n"


IDENTITY = "  - identity: {}\n"


def configured(tree: Tree, *providers: str, resources: str = "secrets") -> None:
    tree.write(PATH, CONFIGURATION.format(resources=resources, providers="".join(providers)), 0o600)
    tree.set_flag("kube-apiserver", "encryption-provider-config", PATH)


def sealed(name: str = "key1", secret: bytes = KEY, resource: str = "secrets") -> Sealed:
    padder = padding.PKCS7(128).padder()
    plain = padder.update(b"k8s\0object") + padder.finalize()
    encryptor = Cipher(algorithms.AES(secret), modes.CBC(b"i" * 16)).encryptor()
    value = f"k8s:enc:aescbc:v1:{name}:".encode() + b"i" * 16 + encryptor.update(plain) + encryptor.finalize()
    return Sealed(resource, "aescbc", name, 3, f"/registry/{resource}/a/b".encode(), value)


PLAIN = Sealed("secrets", "", "", 2, b"/registry/secrets/a/plain")
KMS = Sealed("secrets", "kms", "vault", 1, b"/registry/secrets/a/kms", b"k8s:enc:kms:v2:vault:")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def found(tree: Tree, *stored: Sealed) -> list[Finding]:
    return list(find(Case(tree.node(), stored=data(stored=stored))))


def test_the_key_is_there(tree: Tree) -> None:
    configured(tree, provider(), IDENTITY)
    assert found(tree, sealed(), PLAIN) == []


def test_nothing_is_encrypted(tree: Tree) -> None:
    assert found(tree, PLAIN) == []


def test_no_flag_at_all(tree: Tree) -> None:
    assert "no provider is configured" in found(tree, sealed())[0].title


def test_the_key_was_dropped(tree: Tree) -> None:
    configured(tree, provider("key2", OTHER), IDENTITY)
    assert "aescbc key key1, which is not in the configuration" in found(tree, sealed())[0].title


def test_a_new_secret_under_the_old_name(tree: Tree) -> None:
    configured(tree, provider(secret=OTHER), IDENTITY)
    assert "another secret" in found(tree, sealed())[0].title


def test_identity_is_missing_while_plain_values_are_left(tree: Tree) -> None:
    configured(tree, provider())
    assert "identity is not among the providers" in found(tree, sealed(), PLAIN)[0].title
    assert found(tree, sealed()) == []


def test_a_rule_for_something_else_does_not_count(tree: Tree) -> None:
    configured(tree, provider(), IDENTITY, resources="configmaps")
    assert "no provider is configured" in found(tree, sealed())[0].title


@pytest.mark.parametrize("resources", ["'*.*'", "'*.'", "configmaps, secrets"])
def test_patterns(tree: Tree, resources: str) -> None:
    configured(tree, provider(), IDENTITY, resources=resources)
    assert found(tree, sealed()) == []


def test_groups_of_custom_resources(tree: Tree) -> None:
    configured(tree, provider(), IDENTITY, resources="widgets.example.org")
    assert found(tree, sealed(resource="example.org/widgets")) == []
    assert found(tree, sealed(resource="example.com/widgets")) != []


def test_a_kms_plugin(tree: Tree) -> None:
    configured(tree, "  - kms:\n      apiVersion: v2\n      name: vault\n      endpoint: unix:///kms.sock\n", IDENTITY)
    assert found(tree, KMS) == []
    configured(tree, IDENTITY)
    assert found(tree, KMS) != []


def test_a_masked_secret_is_taken_by_its_name(tree: Tree) -> None:
    configured(tree, provider(), IDENTITY)
    tree.sub(PATH, "secret: .*", "secret: <hidden>")
    assert found(tree, sealed()) == []


def test_an_unreadable_configuration_is_unknown(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "encryption-provider-config", PATH)
    with pytest.raises(EvidenceMissing):
        found(tree, sealed())


def test_control_planes_that_write_with_different_keys(tmp_path: Path) -> None:
    one, two = laid(tmp_path / "1"), laid(tmp_path / "2")
    configured(one, provider(), IDENTITY)
    configured(two, provider("key2", OTHER), provider(), IDENTITY)

    def judged(here: Tree, there: Tree) -> list[Finding]:
        return list(find(Case(here.node(), (there.node(),), data())))

    assert "writes secrets with aescbc key key2" in judged(one, two)[0].title
    assert judged(two, one) == []  # a key that is known and no longer written with: a rotation under way
