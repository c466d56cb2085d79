"""Addresses and endpoints: each check on a healthy node and on broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.commands.check import judged
from drtool.core.report import Severity, Status
from manifests.kubeadm import Design
from tests.builders.tree import Tree, laid, outcomes

MANIFESTS = "/etc/kubernetes/manifests"
ETCD, APISERVER = f"{MANIFESTS}/etcd.yaml", f"{MANIFESTS}/kube-apiserver.yaml"
VIP = Design(endpoint="192.0.2.100:6443")
NAMED = Design(endpoint="k8s.example.org:6443")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def causes(tree: Tree) -> tuple[str, ...]:
    return judged(tree.node()).verdict.root_causes


def failed(tree: Tree, id_: str) -> bool:
    return outcomes(tree.node())[id_].status is Status.FAILED


def test_a_healthy_node_passes(tree: Tree) -> None:
    found = outcomes(tree.node())
    for id_ in (
        "node-address-changed",
        "mixed-old-new-address",
        "advertise-address-not-local",
        "etcd-urls-not-local",
        "probe-target-mismatch",
        "kubeconfig-server-unknown-address",
        "localhost-unresolvable",
        "port-conflict",
        "node-ip-vs-advertise-subnet",
        "pod-service-node-overlap",
    ):
        assert found[id_].status is Status.PASSED, found[id_]
    assert found["hosts-override-endpoint"].status is Status.SKIPPED


def test_a_moved_address_is_the_one_cause(tree: Tree) -> None:
    tree.addresses("192.0.2.120", "10.244.0.1")
    verdict = judged(tree.node()).verdict
    assert verdict.root_causes == ("node-address-changed",)
    first = verdict.findings[0].finding
    assert first.title == "This node's address 192.0.2.111 is gone; it has 192.0.2.120"
    assert first.fix is not None
    assert first.fix.command == "drtool readdress --to 192.0.2.120"
    assert {j.id for j in verdict.findings if j.caused_by} >= {"etcd-urls-not-local", "advertise-address-not-local"}


@pytest.mark.parametrize("left", [(), ("169.254.33.12",)])
def test_a_host_with_no_network_has_lost_its_address(tree: Tree, left: tuple[str, ...]) -> None:
    tree.addresses("127.0.0.1", *left)
    found = judged(tree.node())
    assert found.verdict.root_causes == ("node-address-changed",)
    (cause,) = outcomes(tree.node())["node-address-changed"].findings
    assert cause.title == "This node's address 192.0.2.111 is gone; it has only local ones"
    assert cause.fix is None


def test_unknown_addresses_are_unknown(tree: Tree) -> None:
    tree.remove("/proc")
    found = outcomes(tree.node())
    assert found["node-address-changed"].status is Status.UNKNOWN
    assert found["tree-completeness"].status is Status.FAILED


def test_half_a_move_is_mixed(tree: Tree) -> None:
    tree.addresses("192.0.2.120")
    for name in ("controller-manager.conf", "scheduler.conf", "admin.conf", "kubelet.conf"):
        tree.replace(f"/etc/kubernetes/{name}", "192.0.2.111", "192.0.2.120")
    assert causes(tree) == ("mixed-old-new-address",)
    tree.replace(APISERVER, "192.0.2.111", "192.0.2.120")
    assert causes(tree) == ("mixed-old-new-address",)


def test_etcd_with_another_members_address(tmp_path: Path) -> None:
    members = {"cp-1": "192.0.2.111", "cp-2": "192.0.2.112"}
    tree = laid(tmp_path, Design("cp-2", "192.0.2.112", endpoint="192.0.2.100:6443", members=members))
    tree.set_flag("etcd", "advertise-client-urls", "https://192.0.2.111:2379")
    tree.set_flag("etcd", "initial-advertise-peer-urls", "https://192.0.2.111:2380")
    assert causes(tree) == ("etcd-urls-not-local",)


def test_advertised_address_of_a_nic_that_is_gone(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "advertise-address", "10.0.2.15")
    assert causes(tree) == ("advertise-address-not-local",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("containerPort: 6443", "containerPort: 6444"),
        ("scheme: HTTPS", "scheme: HTTP"),
        ("host: 192.0.2.111", "host: 192.0.2.7"),
    ],
)
def test_a_probe_that_dials_elsewhere(tree: Tree, old: str, new: str) -> None:
    tree.replace(APISERVER, old, new)
    assert causes(tree) == ("probe-target-mismatch",)


def test_a_probe_on_the_node_address_of_a_program_that_binds_loopback(tree: Tree) -> None:
    tree.replace(f"{MANIFESTS}/kube-scheduler.yaml", "host: 127.0.0.1", "host: 192.0.2.111")
    assert causes(tree) == ("probe-target-mismatch",)
    tree.set_flag("kube-scheduler", "bind-address", "0.0.0.0")  # noqa: S104
    assert causes(tree) == ()


def test_scheduler_pointing_to_a_balancer_that_was_replaced(tmp_path: Path) -> None:
    tree = laid(tmp_path, NAMED)
    tree.replace("/etc/kubernetes/scheduler.conf", "192.0.2.111", "192.0.2.240")
    assert causes(tree) == ("kubeconfig-server-unknown-address",)


def test_kubeconfigs_on_the_vip_and_the_local_address_are_both_right(tmp_path: Path) -> None:
    tree = laid(tmp_path, VIP)
    tree.replace("/etc/kubernetes/kubelet.conf", "192.0.2.100", "192.0.2.111")
    assert causes(tree) == ()


def test_an_old_copy_of_admin_conf_is_a_risk_only(tmp_path: Path) -> None:
    tree = laid(tmp_path, VIP)
    tree.replace("/etc/kubernetes/admin.conf", "192.0.2.100", "192.0.2.240")
    report = judged(tree.node())
    assert report.verdict.root_causes == ()
    assert report.worst() is Severity.WARNING


def test_hosts_line_to_the_former_address(tmp_path: Path) -> None:
    tree = laid(tmp_path, NAMED)
    tree.write("/etc/hosts", tree.read("/etc/hosts") + "192.0.2.50 k8s.example.org\n")
    assert not failed(tree, "hosts-override-endpoint")
    tree.journal("kubelet", "dial tcp 192.0.2.50:6443: connect: no route to host")
    assert causes(tree) == ("hosts-override-endpoint",)


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.111"])
def test_the_hairpin_workaround_is_healthy(tmp_path: Path, address: str) -> None:
    tree = laid(tmp_path, NAMED)
    tree.write("/etc/hosts", tree.read("/etc/hosts") + f"{address} k8s.example.org\n")
    assert outcomes(tree.node())["hosts-override-endpoint"].status is Status.PASSED


def test_localhost_that_a_search_domain_answers_for(tree: Tree) -> None:
    tree.write("/etc/hosts", "192.0.2.111 cp-1\n")
    assert judged(tree.node()).worst() is Severity.WARNING
    tree.write("/etc/resolv.conf", "search example.org\nnameserver 192.0.2.53\n")
    tree.log("etcd", "listen tcp 192.0.2.198:2380: bind: cannot assign requested address")
    assert causes(tree) == ("localhost-unresolvable",)


def test_haproxy_on_the_same_port(tree: Tree) -> None:
    tree.write("/etc/haproxy/haproxy.cfg", "frontend api\n  bind *:6443\n  default_backend cps\n")
    assert causes(tree) == ("port-conflict",)
    tree.write("/etc/haproxy/haproxy.cfg", "frontend api\n  bind *:8443\n  default_backend cps\n")
    assert causes(tree) == ()


def test_haproxy_on_the_vip_beside_an_api_server_on_the_node_address(tree: Tree) -> None:
    tree.write("/etc/haproxy/haproxy.cfg", "frontend api\n  bind 192.0.2.100:6443\n")
    tree.set_flag("kube-apiserver", "bind-address", "192.0.2.111")
    assert not failed(tree, "port-conflict")


def node_ip(tree: Tree, value: str) -> None:
    tree.write("/var/lib/kubelet/kubeadm-flags.env", f'KUBELET_KUBEADM_ARGS="--node-ip={value}"\n')


def test_node_ip_in_another_network_is_a_warning(tree: Tree) -> None:
    tree.addresses("192.0.2.111", "10.0.2.15")
    node_ip(tree, "10.0.2.15")
    assert failed(tree, "node-ip-vs-advertise-subnet")
    assert causes(tree) == ()


@pytest.mark.parametrize("value", ["::", "0.0.0.0", "192.0.2.111", "192.0.2.111,fd00::1"])  # noqa: S104 - the kubelet's
def test_node_ips_that_are_right_or_cannot_be_told(tree: Tree, value: str) -> None:
    tree.remove("/proc/net/if_inet6")
    node_ip(tree, value)
    assert not failed(tree, "node-ip-vs-advertise-subnet")
    assert causes(tree) == ()


def test_a_node_ip_that_the_host_does_not_have(tree: Tree) -> None:
    node_ip(tree, "192.0.2.150")
    assert causes(tree) == ("mixed-old-new-address",)
    (finding,) = outcomes(tree.node())["mixed-old-new-address"].findings
    assert finding.severity is Severity.ERROR
    assert finding.evidence[0].path == "/var/lib/kubelet/kubeadm-flags.env"
    node_ip(tree, "203.0.113.9")  # in another network, too
    assert causes(tree) == ("mixed-old-new-address",)


def test_a_node_ip_that_moved_with_the_node_is_no_cause_of_its_own(tree: Tree) -> None:
    node_ip(tree, "192.0.2.111")
    tree.addresses("192.0.2.120")
    assert causes(tree) == ("node-address-changed",)


def test_service_ranges_compare_as_networks(tree: Tree) -> None:
    tree.set_flag("kube-controller-manager", "service-cluster-ip-range", "10.96.0.5/12")
    assert causes(tree) == ()
    tree.set_flag("kube-controller-manager", "service-cluster-ip-range", "10.97.0.0/16")
    assert causes(tree) == ("service-cidr-differs-components",)


def test_ranges_that_overlap(tree: Tree) -> None:
    tree.set_flag("kube-controller-manager", "cluster-cidr", "10.100.0.0/16")
    assert causes(tree) == ("pod-service-node-overlap",)


def test_the_cni_bridge_is_no_overlap_and_the_hosts_own_network_is(tree: Tree) -> None:
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    bridge = "cni0\t0000F40A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    tree.write("/proc/net/route", head + bridge)
    assert not failed(tree, "pod-service-node-overlap")
    tree.write("/proc/net/route", head + bridge.replace("cni0", "eth0"))
    assert failed(tree, "pod-service-node-overlap")


@pytest.mark.parametrize("place", [":::6443 v4v6", "127.0.0.1:8080,*:6443", "[::]:6443", ":6443", "ipv4@:6443"])
def test_each_way_in_which_haproxy_binds_every_address(tree: Tree, place: str) -> None:
    tree.write("/etc/haproxy/haproxy.cfg", f"frontend api\n  bind {place}\n  default_backend cps\n")
    assert causes(tree) == ("port-conflict",)


@pytest.mark.parametrize(("place", "expected"), [("6443", ("port-conflict",)), ("[::]:8443 ipv6only=off", ())])
def test_nginx_on_the_same_port(tree: Tree, place: str, expected: tuple[str, ...]) -> None:
    tree.write("/etc/nginx/nginx.conf", f"stream {{\n  server {{\n    listen {place};\n    proxy_pass cps;\n  }}\n}}\n")
    assert causes(tree) == expected


def test_two_static_pods_on_one_port_of_the_host(tree: Tree) -> None:
    copied = tree.read("/etc/kubernetes/manifests/kube-scheduler.yaml").replace(
        "\n  name: kube-sch", "\n  name: old-sch"
    )
    tree.write("/etc/kubernetes/manifests/old.yaml", copied)
    assert causes(tree) == ("port-conflict",)
    tree.write("/etc/kubernetes/manifests/old.yaml", copied.replace("hostNetwork: true", "hostNetwork: false"))
    assert not failed(tree, "port-conflict")


def test_a_kubeconfig_with_a_port_on_which_nobody_serves(tree: Tree) -> None:
    tree.replace("/etc/kubernetes/scheduler.conf", ":6443", ":6444")
    assert causes(tree) == ("kubeconfig-server-unknown-address",)
    tree.write("/etc/haproxy/haproxy.cfg", "frontend api\n  bind *:6444\n")
    assert causes(tree) == ()


def test_a_stray_address_of_the_other_family_is_not_the_nodes_own(tree: Tree) -> None:
    tree.addresses("192.0.2.111", "2001:db8::111")
    urls = "https://127.0.0.1:2379,https://192.0.2.111:2379,https://[2001:db8::9]:2379"
    tree.set_flag("etcd", "listen-client-urls", urls)
    assert causes(tree) == ("etcd-urls-not-local",)
