"""What kind of node a tree is, whatever is missing from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.host.root import Root
from manifests.layout import DISTRIBUTIONS, Layout, distribution
from manifests.node import read
from tests.builders.real import real
from tests.builders.tree import Tree, laid


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("single-1.34", Layout.STACKED),
        ("external-etcd-1.36", Layout.EXTERNAL_ETCD),
        ("ha-vip-cp2-1.37", Layout.STACKED),
    ],
)
def test_real_trees(name: str, layout: Layout, tmp_path: Path) -> None:
    assert real(name, tmp_path).node().layout is layout


def test_a_missing_manifest_makes_no_other_kind_of_node(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    for program in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        tree.remove(f"/etc/kubernetes/manifests/{program}.yaml")
        assert tree.node().layout is Layout.STACKED


def test_a_worker_an_etcd_host_and_nothing(tmp_path: Path) -> None:
    worker = Tree(tmp_path / "worker")
    worker.write("/etc/kubernetes/kubelet.conf", "kind: Config\n")
    worker.write("/etc/kubernetes/pki/ca.crt", "")
    assert worker.node().layout is Layout.WORKER
    etcd = Tree(tmp_path / "etcd")
    etcd.write("/etc/kubernetes/pki/etcd/server.crt", "")
    assert etcd.node().layout is Layout.ETCD_ONLY
    (tmp_path / "empty").mkdir()
    assert read(Root(tmp_path / "empty")).layout is Layout.EMPTY


@pytest.mark.parametrize(("path", "name"), DISTRIBUTIONS.items())
def test_other_distributions_are_named_unless_kubeadm_stands_there(path: str, name: str, tmp_path: Path) -> None:
    other = Tree(tmp_path / "other")
    other.write(f"{path}/x", "")
    assert other.node().layout is Layout.NOT_KUBEADM
    assert distribution(other.node()) == name
    both = laid(tmp_path / "both")
    both.write(f"{path}/x", "")
    assert both.node().layout is Layout.STACKED
