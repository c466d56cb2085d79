"""The PKI table against what kubeadm really made, and what plans ask of a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.core.errors import CannotTell, Refused
from drtool.plans import site
from manifests.pki.expected import LEAVES
from tests.builders.real import real
from tests.builders.tree import Tree, laid

TREES = (
    "single-1.34", "single-1.36", "single-1.37", "ha-vip-cp1-1.37", "ha-vip-cp2-1.37", "ha-dns-cp1-1.36",
    "external-etcd-1.36", "dualstack-1.37",
)  # fmt: skip


@pytest.mark.parametrize("name", TREES)
def test_what_kubeadm_issued_is_what_would_be_issued_anew(name: str, tmp_path: Path) -> None:
    node = real(name, tmp_path).node()
    compared = 0
    for leaf in LEAVES:
        path, _ = site.leaf_files(node, leaf)
        if node.entry(path).data is None:
            continue
        compared += 1
        certificate, wanted = node.certificate(path), site.subject(node, leaf, site.advertised(node))
        assert wanted.common_name == certificate.common_name, path
        assert wanted.organizations == certificate.organizations, path
        assert set(wanted.names) == set(certificate.names()), path
        if leaf.names:
            assert set(site.wanted_names(node, leaf, site.advertised(node))) == set(certificate.names()), path
    assert compared >= 4


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def test_programs_with_their_ports_and_data(tree: Tree) -> None:
    found = {program.name: program for program in site.programs(tree.node())}
    assert list(found) == ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"]
    assert found["kube-apiserver"].ports == (6443,)
    assert found["etcd"].ports == (2379, 2380)
    assert found["etcd"].data_dir == "/var/lib/etcd"


def test_etcd_is_reached_by_loopback(tree: Tree) -> None:
    assert site.etcd_access(tree.node()).endpoints == ("https://127.0.0.1:2379",)
    tree.set_flag("etcd", "listen-client-urls", "https://0.0.0.0:2379")
    assert site.local_endpoints(tree.node()) == ("https://127.0.0.1:2379",)


def test_a_wal_of_its_own_is_refused(tree: Tree) -> None:
    tree.set_flag("etcd", "wal-dir", "/var/lib/wal")
    with pytest.raises(Refused, match="wal-dir"):
        site.programs(tree.node())


def test_a_worker_is_no_control_plane(tmp_path: Path) -> None:
    from drtool.host.root import Root
    from manifests.node import read

    with pytest.raises(CannotTell, match="no kubeadm control plane"):
        site.need_control_plane(read(Root(tmp_path)))
