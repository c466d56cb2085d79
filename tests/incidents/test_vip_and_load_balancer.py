"""Section D of the incidents, and those of others about virtual addresses and balancers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.balancers import (
    ALIAS,
    DEVICES,
    HAPROXY,
    HUNG,
    KEEPALIVED,
    KUBE_VIP,
    LOCK,
    MANIFEST,
    OLD_KUBE_VIP,
    SCRIPT,
)
from tests.builders.pki import PKI, edit_kubeconfig
from tests.builders.tree import Tree
from tests.incidents.nodes import causes, faults, node_tree, warned

VIP = "192.0.2.100"


def with_kube_vip(tree: Tree, text: str = KUBE_VIP) -> Tree:
    tree.write(MANIFEST, text, 0o600)
    tree.write("/proc/net/dev", DEVICES)
    return tree


@pytest.mark.parametrize("name", ["ha-vip-cp1-1.37", "ha-vip-cp2-1.37"])
def test_kube_vip_as_it_generates_itself_is_healthy(name: str, tmp_path: Path) -> None:
    tree = with_kube_vip(node_tree(name, tmp_path))
    assert faults(tree) == ()
    assert warned(tree, "kube-vip-present")


def test_a_joined_node_without_the_alias_is_at_risk(tmp_path: Path) -> None:
    tree = with_kube_vip(node_tree("ha-vip-cp2-1.37", tmp_path), KUBE_VIP.replace(ALIAS, ""))
    assert faults(tree) == ()
    assert warned(tree, "vip-self-deadlock")


@pytest.mark.parametrize("name", ["ha-vip-cp1-1.37", "ha-vip-cp2-1.37"])
def test_kube_vip_waits_for_itself(name: str, tmp_path: Path) -> None:
    tree = with_kube_vip(node_tree(name, tmp_path), KUBE_VIP.replace(ALIAS, ""))
    tree.log("kube-vip", LOCK)
    tree.log("kube-apiserver", "connection refused")
    assert causes(tree) == ("vip-self-deadlock",)


def test_kube_vip_waits_for_itself_on_the_first_node(tmp_path: Path) -> None:
    tree = with_kube_vip(node_tree("ha-vip-cp1-1.37", tmp_path), KUBE_VIP.replace(ALIAS, ""))
    assert causes(tree) == ("vip-self-deadlock",)


def test_admin_conf_on_the_first_init(tmp_path: Path) -> None:
    tree = with_kube_vip(node_tree("ha-vip-cp1-1.37", tmp_path))
    tree.log(
        "kube-vip",
        "E1214 22:59:00.000000 1 leaderelection.go:448] error retrieving resource lock kube-system/plndr-cp-lock:"
        ' leases.coordination.k8s.io "plndr-cp-lock" is forbidden: User "kubernetes-admin" cannot get resource',
    )
    assert causes(tree) == ("kube-vip-admin-vs-super-admin",)


def test_super_admin_conf_on_a_joined_node(tmp_path: Path) -> None:
    text = KUBE_VIP.replace("path: /etc/kubernetes/admin.conf", "path: /etc/kubernetes/super-admin.conf")
    tree = with_kube_vip(node_tree("ha-vip-cp2-1.37", tmp_path), text)
    assert causes(tree) == ("kube-vip-hostpath-absent",)


@pytest.mark.parametrize("known", ["/proc/net/dev", "/sys/class/net"])
def test_an_interface_of_another_machine(known: str, tmp_path: Path) -> None:
    tree = with_kube_vip(node_tree("ha-vip-cp1-1.37", tmp_path), KUBE_VIP.replace("eth0", "ens192"))
    if known == "/sys/class/net":
        tree.remove("/proc/net/dev")
        tree.write("/sys/class/net/eth0/address", "02:00:00:00:00:01\n")
        tree.write("/sys/class/net/lo/address", "00:00:00:00:00:00\n")
    assert causes(tree) == ("vip-interface-absent",)


def test_an_empty_interface_means_any(tmp_path: Path) -> None:
    tree = with_kube_vip(node_tree("ha-vip-cp1-1.37", tmp_path), KUBE_VIP.replace("eth0", '""'))
    assert faults(tree) == ()


def with_keepalived(tree: Tree) -> Tree:
    tree.write("/etc/keepalived/keepalived.conf", KEEPALIVED)
    tree.write("/etc/keepalived/check_apiserver.sh", SCRIPT, 0o755)
    tree.write("/etc/haproxy/haproxy.cfg", HAPROXY)
    tree.write("/proc/net/dev", DEVICES)
    return tree


@pytest.mark.parametrize("name", ["ha-vip-cp1-1.37", "ha-vip-cp2-1.37"])
def test_keepalived_and_haproxy_as_documented_are_healthy(name: str, tmp_path: Path) -> None:
    assert faults(with_keepalived(node_tree(name, tmp_path))) == ()


def test_the_check_script_is_gone(tmp_path: Path) -> None:
    tree = with_keepalived(node_tree("ha-vip-cp1-1.37", tmp_path))
    tree.remove("/etc/keepalived/check_apiserver.sh")
    assert causes(tree) == ("keepalived-check-broken",)


def test_the_check_script_is_not_executable(tmp_path: Path) -> None:
    tree = with_keepalived(node_tree("ha-vip-cp1-1.37", tmp_path))
    tree.place("/etc/keepalived/check_apiserver.sh").chmod(0o644)
    assert causes(tree) == ("keepalived-check-broken",)


def test_the_check_asks_a_port_that_nobody_serves(tmp_path: Path) -> None:
    tree = with_keepalived(node_tree("ha-vip-cp1-1.37", tmp_path))
    tree.replace("/etc/keepalived/check_apiserver.sh", "8443", "9443")
    assert causes(tree) == ("keepalived-check-broken",)


def test_backends_of_machines_that_are_gone(tmp_path: Path) -> None:
    tree = with_keepalived(node_tree("ha-vip-cp2-1.37", tmp_path))
    tree.replace("/etc/haproxy/haproxy.cfg", "192.0.2.11", "198.51.100.1")
    assert causes(tree) == ("haproxy-backend-stale",)


def test_one_dead_backend_is_fine(tmp_path: Path) -> None:
    tree = with_keepalived(node_tree("ha-vip-cp2-1.37", tmp_path))
    tree.replace("/etc/haproxy/haproxy.cfg", "192.0.2.113", "198.51.100.13")
    assert faults(tree) == ()


@pytest.mark.parametrize(
    ("name", "host", "address"),
    [("ha-dns-cp1-1.36", "k8s.example.org", "203.0.113.9"), ("ha-vip-cp1-1.37", VIP, VIP)],
)
def test_one_in_n_requests_through_the_balancer_hangs(name: str, host: str, address: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    edit_kubeconfig(tree, "/etc/kubernetes/kubelet.conf", server=f"https://{host}:6443")
    tree.journal("kubelet", *[HUNG.format(host=host, address=address)] * 3)
    assert causes(tree) == ("lb-hairpin",)


@pytest.mark.parametrize("own", ["127.0.0.1", "192.0.2.111"])
def test_the_name_mapped_to_this_node_is_healthy(own: str, tmp_path: Path) -> None:
    tree = node_tree("ha-dns-cp1-1.36", tmp_path)
    edit_kubeconfig(tree, "/etc/kubernetes/kubelet.conf", server="https://k8s.example.org:6443")
    tree.write("/etc/hosts", tree.read("/etc/hosts") + f"{own} k8s.example.org\n")
    assert faults(tree) == ()


def test_a_new_kubelet_before_its_api_server(tmp_path: Path) -> None:
    tree = node_tree("ha-vip-cp2-1.37", tmp_path)
    for program in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        tree.replace(f"/etc/kubernetes/manifests/{program}.yaml", ":v1.37.2", ":v1.36.3")
    edit_kubeconfig(tree, "/etc/kubernetes/kubelet.conf", server=f"https://{VIP}:6443")
    tree.write("/drtool/versions.json", '{"kubelet": "v1.37.2", "containerd": "2.1.4", "crio": null}')
    assert causes(tree) == ("version-skew",)


def test_kube_vip_of_the_raft_days(tmp_path: Path) -> None:
    tree = node_tree("ha-vip-cp1-1.37", tmp_path)
    tree.write("/etc/kube-vip/config.yaml", OLD_KUBE_VIP)
    tree.write("/proc/net/dev", DEVICES)
    image = "ghcr.io/kube-vip/kube-vip:v0.1.1"
    tree.write(MANIFEST, KUBE_VIP.replace("ghcr.io/kube-vip/kube-vip:v1.0.1", image), 0o600)
    assert causes(tree) == ("flag-unknown-or-removed",)


def test_a_new_name_for_the_endpoint_without_certificates(tmp_path: Path) -> None:
    tree = node_tree("ha-dns-cp1-1.36", tmp_path)
    for path in ("/kubeadm-config.yaml", "/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf"):
        tree.replace(path, "k8s.example.org", "api.example.org")
    assert causes(tree) == ("san-missing-endpoint",)


def test_the_service_range_moved_without_certificates(tmp_path: Path) -> None:
    tree = node_tree("single-1.37", tmp_path)
    for program in ("kube-apiserver", "kube-controller-manager"):
        tree.replace(f"/etc/kubernetes/manifests/{program}.yaml", "10.96.0.0/12", "10.112.0.0/12")
    tree.replace("/kubeadm-config.yaml", "10.96.0.0/12", "10.112.0.0/12")
    assert causes(tree) == ("san-missing-service-address",)


def test_keys_open_to_everybody_are_a_risk(tmp_path: Path) -> None:
    tree = node_tree("single-1.37", tmp_path)
    tree.place(f"{PKI}/ca.key").chmod(0o644)
    assert causes(tree) == ()
    assert warned(tree, "key-file-readable")
