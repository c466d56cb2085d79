"""What kind of node a tree is, told before anything is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.commands.check import judged
from drtool.core.report import Status
from manifests.layout import Layout
from tests.builders.tree import Tree, laid, outcomes


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def test_stacked(tree: Tree) -> None:
    assert tree.node().layout is Layout.STACKED
    assert outcomes(tree.node())["layout-detect"].status is Status.PASSED
    assert outcomes(tree.node())["worker-node"].status is Status.SKIPPED


def test_external_etcd(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "etcd-servers", "https://192.0.2.131:2379,https://192.0.2.132:2379")
    tree.remove("/etc/kubernetes/manifests/etcd.yaml")
    for name in ("server", "peer"):
        tree.remove(f"/etc/kubernetes/pki/etcd/{name}.crt")
    assert tree.node().layout is Layout.EXTERNAL_ETCD
    assert outcomes(tree.node())["role-from-kubeadm-config"].status is Status.FAILED
    external = "etcd:\n  external:\n    endpoints: ['https://192.0.2.131:2379', 'https://192.0.2.132:2379']\n"
    configuration = "/etc/kubernetes/kubeadm-config.yaml"
    tree.write(configuration, tree.read(configuration) + external)
    assert outcomes(tree.node())["role-from-kubeadm-config"].status is Status.PASSED
    assert judged(tree.node()).verdict.root_causes == ()


def test_a_manifest_that_is_gone_does_not_change_the_layout(tree: Tree) -> None:
    tree.remove("/etc/kubernetes/manifests/etcd.yaml")
    assert tree.node().layout is Layout.STACKED
    assert judged(tree.node()).verdict.root_causes == ("manifest-missing",)


def test_worker(tree: Tree) -> None:
    for path in ("/etc/kubernetes/manifests", "/etc/kubernetes/pki", "/var/lib/etcd"):
        tree.remove(path)
    for name in ("admin", "super-admin", "controller-manager", "scheduler"):
        tree.remove(f"/etc/kubernetes/{name}.conf")
    tree.write("/etc/kubernetes/pki/ca.crt", tree.authorities["ca"].certificate_pem)
    node = tree.node()
    assert node.layout is Layout.WORKER
    assert outcomes(node)["worker-node"].status is Status.FAILED
    assert judged(node).verdict.root_causes == ()


def test_etcd_only_host(tree: Tree) -> None:
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        tree.remove(f"/etc/kubernetes/manifests/{name}.yaml")
    for name in ("admin", "super-admin", "controller-manager", "scheduler", "kubelet"):
        tree.remove(f"/etc/kubernetes/{name}.conf")
    for name in ("apiserver.crt", "ca.crt"):
        tree.remove(f"/etc/kubernetes/pki/{name}")
    assert tree.node().layout is Layout.ETCD_ONLY
    assert judged(tree.node()).verdict.root_causes == ()


@pytest.mark.parametrize("trace", ["/var/lib/rancher/rke2/server", "/var/lib/k0s/pki", "/var/snap/microk8s/current"])
def test_other_distributions_are_named_and_not_judged(tmp_path: Path, trace: str) -> None:
    tree = Tree(tmp_path)
    tree.write(f"{trace}/token", "x")
    report = judged(tree.node())
    assert report.node.layout is Layout.NOT_KUBEADM
    assert [judged.id for judged in report.verdict.findings] == ["layout-detect"]
    judged_all = {outcome.id: outcome.status for outcome in report.outcomes}
    assert judged_all["manifest-missing"] is judged_all["never-initialised-or-reset"] is Status.SKIPPED


def test_reset_with_data_left(tree: Tree) -> None:
    for path in ("/etc/kubernetes/pki", "/etc/kubernetes/manifests"):
        tree.remove(path)
        tree.place(path).mkdir()
    for name in ("admin", "super-admin", "controller-manager", "scheduler", "kubelet"):
        tree.remove(f"/etc/kubernetes/{name}.conf")
    tree.remove("/var/lib/kubelet/config.yaml")
    tree.write("/var/lib/etcd/member/snap/db", b"")
    assert judged(tree.node()).verdict.root_causes == ("never-initialised-or-reset",)


def test_a_host_with_only_the_packages_is_no_fault(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("/usr/lib/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet\n")
    tree.place("/etc/kubernetes").mkdir(parents=True)
    assert judged(tree.node()).verdict.root_causes == ()
