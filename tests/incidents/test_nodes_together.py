"""Outages that only several nodes tell, on two real control planes of one cluster judged together."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.commands.check import check_together, together_as_data
from drtool.core.report import Severity
from drtool.host.root import Root
from snapshots import fresh_datadir
from snapshots.cluster import Member
from tests.builders.member import DATA, DB, index, member_tree, rewrite
from tests.builders.pki import new_authority, reissue
from tests.builders.tree import NOW, Tree
from tests.incidents.trials.trial import copy

CP2 = Member(0xB8EA9F0CE19402A7, "cp-2", ("https://192.0.2.112:2380",), ("https://192.0.2.112:2379",))
ENCRYPTION = """apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aescbc:
      keys:
      - name: {name}
        secret: {secret}
  - identity: {{}}
"""


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Tree, Tree]:
    return member_tree("ha-vip-cp1-1.37", tmp_path / "1"), member_tree("ha-vip-cp2-1.37", tmp_path / "2")


def causes(*trees: Tree) -> list[str]:
    reports = check_together([Root(tree.root) for tree in trees], NOW, probe=False)
    found: list[str] = together_as_data(reports)["rootCauses"]
    return found


def test_two_healthy_members(pair: tuple[Tree, Tree]) -> None:
    reports = check_together([Root(tree.root) for tree in pair], NOW, probe=False)
    assert all((report.worst() or Severity.INFO) < Severity.ERROR for report in reports)
    compared = {outcome.id: outcome.status for report in reports for outcome in report.outcomes}
    assert compared["etcd-inconsistent-members"] == "passed"
    assert compared["etcd-cluster-id-mismatch"] == "passed"


def test_restored_from_different_snapshots(pair: tuple[Tree, Tree]) -> None:
    place = pair[1].place(DB)
    data = place.read_bytes()
    assert b"192.0.2.100:6443" in data
    place.write_bytes(data.replace(b"192.0.2.100:6443", b"192.0.2.101:6443"))
    assert causes(*pair) == ["etcd-inconsistent-members"]


def test_a_member_restored_alone(pair: tuple[Tree, Tree]) -> None:
    tree = pair[1]
    directory = tree.place(DATA)
    tree.remove(f"{DATA}/member/wal")
    for path in directory.glob("member/snap/*.snap"):
        path.unlink()
    fresh_datadir.write_log(directory, (CP2,), CP2.id, 0x1234)
    rewrite(tree, meta=index(1), members=lambda old: {k: v for k, v in old.items() if int(k, 16) == CP2.id})
    assert causes(*pair) == ["etcd-cluster-id-mismatch"]


def test_encryption_keys_that_differ(pair: tuple[Tree, Tree]) -> None:
    for tree, name in zip(pair, ("key1", "key2"), strict=True):
        tree.write("/etc/kubernetes/pki/encryption.yaml", ENCRYPTION.format(name=name, secret="a" * 43 + "="), 0o600)
        tree.set_flag("kube-apiserver", "encryption-provider-config", "/etc/kubernetes/pki/encryption.yaml")
    assert causes(*pair) == ["encryption-keys-vs-data"]


def test_a_node_of_another_cluster(pair: tuple[Tree, Tree], tmp_path: Path) -> None:
    other = member_tree("single-1.36", tmp_path / "3")
    assert "shared-authorities-differ" in causes(*pair, other)


@pytest.fixture
def issuing(tmp_path: Path) -> tuple[Tree, Tree]:
    """The same pair, with CAs that issue."""
    return copy("ha-vip-cp1-1.37", tmp_path / "1"), copy("ha-vip-cp2-1.37", tmp_path / "2")


def test_service_ranges_that_differ(issuing: tuple[Tree, Tree]) -> None:
    second = issuing[1]
    for program in ("kube-apiserver", "kube-controller-manager"):
        second.set_flag(program, "service-cluster-ip-range", "10.112.0.0/12")
    names = ("cp-2", "kubernetes.default.svc", second.design.address, "10.112.0.1", "192.0.2.100")
    reissue(second, "apiserver", names=names)
    assert causes(*issuing) == ["service-cidr-differs-components"]


def test_a_front_proxy_ca_of_its_own(issuing: tuple[Tree, Tree]) -> None:
    authority = new_authority(issuing[1], "front-proxy-ca", common_name="front-proxy-ca")
    reissue(issuing[1], "front-proxy-client", authority=authority)
    assert causes(*issuing) == ["front-proxy-pair"]
