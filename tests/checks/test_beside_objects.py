"""What a node's own files say where objects alone, or one file alone, do not tell; on made trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.commands.check import judged
from drtool.core.report import Severity
from manifests.installed import kubelet_release
from manifests.kubeadm import Design
from tests.builders.pki import client, edit_kubeconfig
from tests.builders.tree import BORN, Tree, laid

MANAGER = "kube-controller-manager"
CALICO = '{"cniVersion":"1.0.0","name":"k8s","plugins":[{"type":"calico","ipam":{"type":"calico-ipam"}}]}'
KUBEADM = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking: {podSubnet: 10.244.0.0/16}\n"
CONFIG = "/var/lib/kubelet/config.yaml"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = laid(tmp_path)
    made.write("/root/kubeadm-config.yaml", KUBEADM)
    return made


def causes(tree: Tree) -> tuple[str, ...]:
    return judged(tree.node()).verdict.root_causes


def test_a_controller_manager_that_gives_no_ranges(tree: Tree) -> None:
    assert causes(tree) == ()
    tree.set_flag(MANAGER, "allocate-node-cidrs", None)
    assert causes(tree) == ("podcidr-missing",)
    tree.write("/etc/cni/net.d/05-calico.conflist", CALICO)
    assert causes(tree) == ()


def test_a_range_with_room_for_one_node_only(tree: Tree) -> None:
    tree.set_flag(MANAGER, "cluster-cidr", "10.244.0.0/24")
    assert causes(tree) == ()
    tree.log(MANAGER, "E there are no remaining CIDRs left to allocate in the accepted range")
    assert causes(tree) == ("podcidr-missing",)


def test_a_range_that_was_changed(tree: Tree) -> None:
    tree.set_flag(MANAGER, "cluster-cidr", "10.200.0.0/16")
    assert causes(tree) == ()
    tree.log(MANAGER, "E cidr 10.244.0.0/24 is out the range of cluster cidr 10.200.0.0/16")
    assert causes(tree) == ("podcidr-outside",)


def test_a_kubeconfig_that_names_a_stranger(tree: Tree) -> None:
    for server, expected in (
        ("https://cp-1:6443", ()),
        ("https://kubernetes.default:6443", ()),
        ("https://old-lb.example.org:6443", ("kubeconfig-server-unknown-address",)),
    ):
        edit_kubeconfig(tree, "/etc/kubernetes/scheduler.conf", server=server)
        assert causes(tree) == expected, server


def test_an_api_server_on_the_nic_that_its_certificate_is_not_for(tree: Tree) -> None:
    tree.addresses(tree.design.address, "10.0.2.15")
    assert causes(tree) == ()
    tree.set_flag("kube-apiserver", "advertise-address", "10.0.2.15")
    assert causes(tree) == ("node-ip-vs-advertise-subnet",)


def test_dockers_own_socket_speaks_no_cri(tree: Tree) -> None:
    tree.write("/etc/containerd/config.toml", "version = 3\n")
    assert causes(tree) == ()
    tree.sub(CONFIG, r"containerRuntimeEndpoint: \S+", "containerRuntimeEndpoint: unix:///var/run/docker.sock")
    assert causes(tree) == ("runtime-endpoint-wrong",)


def test_the_kubelets_version_by_dpkg(tree: Tree) -> None:
    package = "Package: kubelet\nStatus: install ok installed\nVersion: 1.36.4-1.1\n\nPackage: z\nVersion: 1.0.0\n"
    tree.write("/var/lib/dpkg/status", package)
    assert str(kubelet_release(tree.node())) == "1.36.4"
    tree.write("/var/lib/dpkg/status", package.replace("ok installed", "ok config-files"))
    assert not kubelet_release(tree.node()).certain


def test_embedded_data_without_rotation(tree: Tree) -> None:
    edit_kubeconfig(tree, "/etc/kubernetes/kubelet.conf", issued=client(tree, "kubelet.conf", BORN))
    assert causes(tree) == ("kubelet-client-link",)
    tree.sub(CONFIG, "rotateCertificates: true", "rotateCertificates: false")
    assert causes(tree) == ()


def test_settings_that_an_upgrade_lost_explain_what_is_wrong_with_the_rest(tree: Tree) -> None:
    whole = tree.read(CONFIG)
    tree.write("/etc/kubernetes/tmp/kubeadm-kubelet-config1/config.yaml", whole + "failSwapOn: false\n")
    tree.write("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 2097148 0 -2\n")
    assert causes(tree) == ("kubelet-config-missing",)


def test_a_copy_without_the_kubelets_directory_lacks_nothing(tree: Tree) -> None:
    tree.remove("/var/lib/kubelet")
    faults = {one.id for one in judged(tree.node()).verdict.findings if one.severity >= Severity.ERROR}
    assert "kubelet-config-missing" not in faults


def test_a_joined_member_is_told_so(tmp_path: Path) -> None:
    members = {"cp-1": "192.0.2.111", "cp-2": "192.0.2.112"}
    tree = laid(tmp_path, Design("cp-2", "192.0.2.112", endpoint="192.0.2.100:6443", members=members))
    assert "--initial-cluster-state=existing" in tree.read("/etc/kubernetes/manifests/etcd.yaml")
    assert causes(tree) == ()
