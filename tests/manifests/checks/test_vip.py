"""Checks of virtual addresses and balancers: nothing where there is none, each one on the node broken for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drtool.core.report import Status
from manifests.kubeadm import Design
from tests.builders.balancers import ALIAS, DEVICES, HAPROXY, HUNG, KEEPALIVED, KUBE_VIP, MANIFEST, SCRIPT
from tests.builders.pki import edit_kubeconfig
from tests.builders.tree import Tree, laid, outcomes

DESIGN = Design(endpoint="192.0.2.100:6443")


def vip(tree: Tree, old: str = "", new: str = "") -> None:
    tree.write(MANIFEST, KUBE_VIP.replace(old, new) if old else KUBE_VIP, 0o600)
    tree.write("/proc/net/dev", DEVICES)


def keepalived(tree: Tree, old: str = "", new: str = "") -> None:
    tree.write("/etc/keepalived/keepalived.conf", KEEPALIVED.replace(old, new) if old else KEEPALIVED)
    tree.write("/etc/keepalived/check_apiserver.sh", SCRIPT, 0o755)
    tree.write("/etc/haproxy/haproxy.cfg", HAPROXY)
    tree.write("/proc/net/dev", DEVICES)


def hairpin(tree: Tree) -> None:
    edit_kubeconfig(tree, "/etc/kubernetes/kubelet.conf", server="https://lb.example.org:6443")
    tree.journal("kubelet", HUNG.format(host="lb.example.org", address="203.0.113.9"))


BROKEN: dict[str, Callable[[Tree], object]] = {
    "vip-self-deadlock": lambda tree: vip(tree, ALIAS),
    "kube-vip-hostpath-absent": lambda tree: (vip(tree), tree.remove("/etc/kubernetes/admin.conf")),
    "kube-vip-admin-vs-super-admin": lambda tree: (
        vip(tree),
        tree.log("kube-vip", 'leases "plndr-cp-lock" is forbidden: User "kubernetes-admin" cannot get resource'),
    ),
    "vip-interface-absent": lambda tree: vip(tree, "eth0", "ens9"),
    "vip-prefix-source-address": lambda tree: vip(tree, 'value: "32"', 'value: "24"'),
    "keepalived-check-broken": lambda tree: keepalived(tree, "check_apiserver.sh", "check.sh"),
    "haproxy-backend-stale": lambda tree: (
        keepalived(tree),
        tree.replace("/etc/haproxy/haproxy.cfg", "192.0.2.11", "198.51.100.1"),
    ),
    "kube-vip-present": vip,
    "lb-hairpin": hairpin,
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path, DESIGN)


@pytest.mark.parametrize("id_", BROKEN)
def test_a_broken_node_fails(id_: str, tree: Tree) -> None:
    BROKEN[id_](tree)
    assert outcomes(tree.node())[id_].status is Status.FAILED


def test_kube_vip_as_generated_passes(tree: Tree) -> None:
    vip(tree)
    found = outcomes(tree.node())
    for id_ in (id_ for id_ in BROKEN if id_.startswith(("vip", "kube-vip")) and id_ != "kube-vip-present"):
        assert found[id_].status is Status.PASSED, found[id_]


def test_keepalived_and_haproxy_as_documented_pass(tree: Tree) -> None:
    keepalived(tree)
    found = outcomes(tree.node())
    for id_ in (
        "keepalived-check-broken",
        "haproxy-backend-stale",
        "vip-interface-absent",
        "vip-prefix-source-address",
    ):
        assert found[id_].status is Status.PASSED, found[id_]


def test_without_any_of_it_they_do_not_apply(tmp_path: Path) -> None:
    found = outcomes(laid(tmp_path).node())
    for id_ in set(BROKEN) - {"kube-vip-present"}:
        assert found[id_].status is Status.SKIPPED, found[id_]
    assert found["kube-vip-present"].status is Status.PASSED


def test_an_address_given_outright_solves_the_deadlock(tree: Tree) -> None:
    vip(tree, ALIAS)
    tree.replace(
        MANIFEST,
        "    - name: cp_enable",
        "    - name: kubernetes_addr\n      value: https://127.0.0.1:6443\n    - name: cp_enable",
    )
    assert outcomes(tree.node())["vip-self-deadlock"].status is Status.PASSED


def test_nginx_upstreams_are_balancers_too(tree: Tree) -> None:
    upstream = "stream {{\n  upstream api {{\n    server {0}:6443;\n    server {1}:6443;\n  }}\n"
    text = upstream + "  server {{ listen 8443; }}\n}}\n"
    tree.write("/etc/nginx/nginx.conf", text.format("192.0.2.111", "192.0.2.112"))
    assert outcomes(tree.node())["haproxy-backend-stale"].status is Status.PASSED
    tree.write("/etc/nginx/nginx.conf", text.format("198.51.100.1", "198.51.100.2"))
    assert outcomes(tree.node())["haproxy-backend-stale"].status is Status.FAILED


def test_a_script_that_nobody_tracks_is_a_warning(tree: Tree) -> None:
    keepalived(tree, "        check_apiserver\n", "        other\n")
    findings = outcomes(tree.node())["keepalived-check-broken"].findings
    assert [finding.title for finding in findings] == ["No instance tracks the script check_apiserver"]


def test_an_endpoint_that_refuses_is_no_hairpin(tree: Tree) -> None:
    hairpin(tree)
    refused = HUNG.format(host="lb.example.org", address="203.0.113.9").replace(
        "i/o timeout", "connect: connection refused"
    )
    tree.journal("kubelet", HUNG.format(host="lb.example.org", address="203.0.113.9"), refused)
    assert outcomes(tree.node())["lb-hairpin"].status is Status.PASSED


@pytest.mark.parametrize(
    "script",
    [
        "#!/bin/sh\nAPISERVER_DEST_PORT=7443\ncurl -sfk https://localhost:${APISERVER_DEST_PORT}/healthz || exit 1\n",
        "#!/bin/sh\nexport PORT='7443'\nnc -z 127.0.0.1 $PORT\n",
    ],
)
def test_a_check_that_asks_a_port_from_a_variable(tree: Tree, script: str) -> None:
    keepalived(tree)
    tree.write("/etc/keepalived/check_apiserver.sh", script.replace("7443", "6443"), 0o755)
    assert outcomes(tree.node())["keepalived-check-broken"].status is Status.PASSED
    tree.write("/etc/keepalived/check_apiserver.sh", script, 0o755)
    assert outcomes(tree.node())["keepalived-check-broken"].status is Status.FAILED
