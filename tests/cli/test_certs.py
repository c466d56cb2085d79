"""`drtool certs`: every certificate with its reader, and no key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from drtool.cli.certs import command
from drtool.core.errors import CannotTell
from tests.builders.pki import DAY, client, edit_kubeconfig, reissue
from tests.builders.tree import BORN, Tree, laid

AT = "2026-12-15T00:00:00Z"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def told(tree: Tree, output: str = "json") -> str:
    done = CliRunner().invoke(command, ["--root", str(tree.root), "--at", AT, "-o", output], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_each_is_listed_with_its_reader(tree: Tree) -> None:
    found = json.loads(told(tree))
    assert next(iter(found)) == "schemaVersion"
    rows = {(row["file"], row["role"]): row for row in found["certificates"]}
    server = rows["/etc/kubernetes/pki/etcd/server.crt", "etcd server"]
    assert server["readBy"] == ["etcd"]
    assert server["names"] == ["cp-1", "localhost", "192.0.2.111", "127.0.0.1", "::1"]
    assert server["issuer"] == "etcd-ca"
    assert (server["state"], server["daysLeft"]) == ("valid", 350)
    assert rows["/etc/kubernetes/pki/ca.crt", "CA"]["readBy"] == [
        "kube-apiserver",
        "kube-controller-manager",
        "kubelet",
    ]
    assert rows["/etc/kubernetes/scheduler.conf", "scheduler client"]["readBy"] == ["kube-scheduler"]
    current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
    assert rows[current, "kubelet client"]["subject"] == "CN=system:node:cp-1,O=system:nodes"


def test_expired_ones_say_so(tree: Tree) -> None:
    reissue(tree, "apiserver", life=DAY)
    tree.write("/root/.kube/config", tree.read("/etc/kubernetes/admin.conf"))
    edit_kubeconfig(tree, "/root/.kube/config", issued=client(tree, "admin.conf", BORN, DAY))
    states = {row["file"]: row["state"] for row in json.loads(told(tree))["certificates"] if not row["isCA"]}
    assert states["/etc/kubernetes/pki/apiserver.crt"] == states["/root/.kube/config"] == "expired"
    assert states["/etc/kubernetes/pki/etcd/peer.crt"] == "valid"
    assert "(expired)" in told(tree, "table")


def test_table_and_yaml_tell_the_same(tree: Tree) -> None:
    assert yaml.safe_load(told(tree, "yaml")) == json.loads(told(tree))
    table = told(tree, "table").splitlines()
    assert table[0].split()[:4] == ["FILE", "SUBJECT", "ISSUER", "EXPIRES"]
    assert len(table) - 1 == len(json.loads(told(tree))["certificates"])


def test_no_key_material_ever(tree: Tree) -> None:
    secrets = [path.read_text() for path in tree.root.rglob("*.key")]
    lines = {line for secret in secrets for line in secret.splitlines() if line and "-----" not in line}
    for output in ("table", "json", "yaml"):
        text = told(tree, output)
        assert "PRIVATE KEY" not in text
        assert not [line for line in lines if line in text]


def test_a_directory_without_any_cannot_be_told(tmp_path: Path) -> None:
    with pytest.raises(CannotTell):
        CliRunner().invoke(command, ["--root", str(tmp_path)], catch_exceptions=False)
