"""What all control planes of a cluster must share, weighed over several nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.checks import Case
from drtool.checks.apiserver import front_proxy_pair, sa_issuer_changed, sa_pair_broken
from manifests.kubeadm import Design
from manifests.pki.issuing import new_key, private_pem, public_pem
from tests.builders.pki import PKI, new_authority, reissue
from tests.builders.tree import Tree, laid

CHECKS = (sa_pair_broken, sa_issuer_changed, front_proxy_pair)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Tree, Tree]:
    members = {"cp-1": "192.0.2.1", "cp-2": "192.0.2.2"}
    first = laid(tmp_path / "one", Design("cp-1", "192.0.2.1", members=members))
    return first, laid(tmp_path / "two", Design("cp-2", "192.0.2.2", members=members), first.authorities)


def titles(first: Tree, second: Tree) -> list[str]:
    case = Case(first.node(), (second.node(),))
    return [finding.title for check in CHECKS for finding in check.find(case)]


def test_nodes_that_share_their_keys_pass(pair: tuple[Tree, Tree]) -> None:
    assert titles(*pair) == titles(*reversed(pair)) == []


def test_another_sa_pair_on_one_node(pair: tuple[Tree, Tree]) -> None:
    key = new_key("ECDSA-P256")
    pair[1].write(f"{PKI}/sa.key", private_pem(key))
    pair[1].write(f"{PKI}/sa.pub", public_pem(key))
    found = titles(*pair)
    assert len(found) == 2
    assert all(title.endswith("fits none that cp-2 knows") for title in found)


def test_a_second_verification_key_is_a_rotation(pair: tuple[Tree, Tree]) -> None:
    key = new_key("ECDSA-P256")
    for tree in pair:
        tree.write(f"{PKI}/sa.pub", tree.read(f"{PKI}/sa.pub") + public_pem(key).decode())
    pair[1].write(f"{PKI}/sa.key", private_pem(key))
    assert titles(*pair) == titles(*reversed(pair)) == []


def test_another_issuer_on_one_node(pair: tuple[Tree, Tree]) -> None:
    pair[1].set_flag("kube-apiserver", "service-account-issuer", "https://example.org")
    assert titles(*pair)[0].endswith("which cp-2 does not accept")


def test_another_front_proxy_ca_on_one_node(pair: tuple[Tree, Tree]) -> None:
    ca = new_authority(pair[1], "front-proxy-ca", common_name="front-proxy-ca")
    reissue(pair[1], "front-proxy-client", authority=ca)
    assert titles(*pair)[0].endswith("front-proxy-ca.crt of cp-2")


def test_a_tree_of_another_cluster_says_nothing(pair: tuple[Tree, Tree], tmp_path: Path) -> None:
    stranger = laid(tmp_path / "three", Design("cp-3", "192.0.2.3"))
    assert titles(pair[0], stranger) == []
