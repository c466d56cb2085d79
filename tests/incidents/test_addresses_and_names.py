"""Section A of the incidents: addresses and the names in certificates."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from manifests.kubeadm import Design
from tests.builders.pki import PKI, edit_kubeconfig, reissue
from tests.builders.tree import Tree, laid
from tests.incidents.nodes import SECOND, causes, each_single, faults, node_tree, warned

MANIFESTS = "/etc/kubernetes/manifests"
CONFIGS = ("admin", "super-admin", "kubelet", "controller-manager", "scheduler")
NEW = "192.0.2.67"


@each_single
def test_an_address_handed_out_anew_by_dhcp(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.addresses(NEW)
    assert causes(tree) == ("node-address-changed",)


@each_single
def test_only_the_kubeconfigs_were_edited(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.addresses(NEW)
    for config in CONFIGS:
        edit_kubeconfig(tree, f"/etc/kubernetes/{config}.conf", server=f"https://{NEW}:6443")
    tree.write("/etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n{NEW} {tree.design.name}\n")
    assert causes(tree) == ("mixed-old-new-address",)


@each_single
def test_the_manifests_were_edited_without_the_certificates(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.addresses(NEW)
    for program in ("etcd", "kube-apiserver"):
        tree.replace(f"{MANIFESTS}/{program}.yaml", tree.design.address, NEW)
    for config in CONFIGS:
        edit_kubeconfig(tree, f"/etc/kubernetes/{config}.conf", server=f"https://{NEW}:6443")
    assert set(faults(tree)) >= {"san-missing-own-address"}
    assert causes(tree)[0] in {"san-missing-own-address", "mixed-old-new-address"}


def pair(tmp_path: Path) -> tuple[Tree, Tree]:
    members = {"host1": "192.0.2.1", "host2": "192.0.2.2"}
    designs = [
        Design(name=name, address=address, endpoint="192.0.2.9:6443", members=members)
        for name, address in members.items()
    ]
    first = laid(tmp_path / "one", designs[0])
    second = laid(tmp_path / "two", designs[1], first.authorities)
    for tree in (first, second):
        tree.write("/var/lib/etcd/member/snap/db", b"")
    return first, second


def copy_pki(source: Tree, target: Tree, *paths: str) -> None:
    for path in paths:
        for suffix in (".crt", ".key"):
            shutil.copyfile(source.place(f"{PKI}/{path}{suffix}"), target.place(f"{PKI}/{path}{suffix}"))


NODE_SPECIFIC = ("apiserver", "etcd/server", "etcd/peer")


def test_certificates_renewed_on_one_node_and_copied(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    assert faults(first) == faults(second) == ()
    copy_pki(first, second, *NODE_SPECIFIC)
    assert causes(second) == ("cert-of-other-node",)
    assert "san-missing-own-address" in faults(second)


def test_the_whole_pki_copied(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    shutil.copytree(first.place(PKI), second.place(PKI), dirs_exist_ok=True)
    assert causes(second) == ("cert-of-other-node",)


def test_only_etcds_directory_copied(tmp_path: Path) -> None:
    first, second = pair(tmp_path)
    copy_pki(first, second, "etcd/server", "etcd/peer")
    assert causes(second) == ("cert-of-other-node",)


def test_the_first_nodes_pki_over_a_real_second_one(tmp_path: Path) -> None:
    first, second = node_tree("ha-vip-cp1-1.37", tmp_path / "one"), node_tree("ha-vip-cp2-1.37", tmp_path / "two")
    shutil.copytree(first.place(PKI), second.place(PKI), dirs_exist_ok=True)
    assert causes(second) == ("cert-of-other-node",)


@pytest.mark.parametrize("name", SECOND)
@pytest.mark.parametrize("paths", [NODE_SPECIFIC, NODE_SPECIFIC[1:], NODE_SPECIFIC[:1]])
def test_leafs_of_another_host_on_a_joined_node(name: str, paths: tuple[str, ...], tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    before = causes(tree)
    for path in paths:
        names = (
            ("host1", "localhost", "192.0.2.1", "127.0.0.1")
            if path != "apiserver"
            else ("host1", "kubernetes", "kubernetes.default.svc", "10.96.0.1", "192.0.2.1")
        )
        reissue(tree, path, names=names, common_name="" if path == "apiserver" else "host1")
    assert [cause for cause in causes(tree) if cause not in before] == ["cert-of-other-node"]


KEEPALIVED = """
vrrp_instance VI_1 {{
    state MASTER
    interface eth0
    virtual_router_id 51
    priority 101
    virtual_ipaddress {{
        {vip}
    }}
}}
"""
REJECTED = (
    'rejected connection from "{vip}:65036" (error "tls: \\"{vip}\\" does not match any of DNSNames [\\"cp-1\\"]"'
    ', ServerName "", IPAddresses ["192.0.2.111" "127.0.0.1" "::1"], DNSNames ["cp-1" "localhost"])'
)
REJECTED_JSON = (
    '{{"level":"warn","ts":"2026-12-14T22:59:00.000Z","caller":"embed/config_logging.go:170","msg":"rejected connection'
    ' on peer endpoint","remote-addr":"{vip}:65036","server-name":"","error":"tls: \\"{vip}\\" does not match any of'
    ' DNSNames [\\"cp-1\\"]"}}'
)


@pytest.mark.parametrize("line", [REJECTED, REJECTED_JSON])
@pytest.mark.parametrize("name", ["made", "ha-vip-cp1-1.37"])
def test_peers_see_the_virtual_address(name: str, line: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.addresses("192.0.2.100", tree.design.address)
    tree.write("/etc/keepalived/keepalived.conf", KEEPALIVED.format(vip="192.0.2.100/24 dev eth0"))
    tree.write("/proc/net/dev", "Inter-|\n face |\n    lo: 0 0\n  eth0: 0 0\n")
    tree.log("etcd", line.format(vip="192.0.2.100"))
    assert causes(tree) == ("vip-prefix-source-address",)


@pytest.mark.parametrize("vip", ["192.0.2.100/32 dev eth0", "192.0.2.100"])
def test_a_virtual_address_of_its_own_is_healthy(vip: str, tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.addresses("192.0.2.100", tree.design.address)
    tree.write("/etc/keepalived/keepalived.conf", KEEPALIVED.format(vip=vip))
    tree.write("/proc/net/dev", "Inter-|\n face |\n    lo: 0 0\n  eth0: 0 0\n")
    assert faults(tree) == ()
    assert not warned(tree, "vip-prefix-source-address")


@each_single
def test_a_peer_certificate_with_names_only(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    reissue(tree, "etcd/peer", names=(tree.design.name, "localhost"))
    assert causes(tree) == ("san-missing-own-address",)
