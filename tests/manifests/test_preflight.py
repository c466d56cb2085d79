"""Host preparation: each item on a fit host and on one that lacks it."""

from __future__ import annotations

from pathlib import Path

import pytest

import manifests.preflight
from drtool.core.check import load, run
from drtool.core.report import Outcome, Severity, Status
from tests.builders.tree import Tree

HEALTHY = {
    "/etc/hostname": "w-1\n",
    "/etc/hosts": "127.0.0.1 localhost\n192.0.2.21 w-1\n",
    "/etc/fstab": "UUID=1 / ext4 defaults 0 1\n",
    "/etc/sysctl.d/99-kubernetes.conf": "net.ipv4.ip_forward = 1\n",
    "/etc/systemd/system/multi-user.target.wants/chrony.service": "",
    "/etc/systemd/system/multi-user.target.wants/kubelet.service": "",
    "/etc/containerd/config.toml": "version = 2\n"
    '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n'
    "  SystemdCgroup = true\n",
    "/proc/cpuinfo": "processor\t: 0\n\nprocessor\t: 1\n",
    "/proc/meminfo": "MemTotal:        4026532 kB\n",
    "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
    "/proc/sys/net/ipv4/ip_forward": "1\n",
    "/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
    "/proc/modules": "br_netfilter 32768 0 - Live 0x0\n",
    "/proc/net/tcp": "  sl  local_address rem_address   st\n",
    "/proc/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    "/usr/sbin/losetup": "",
    "/usr/bin/mount": "",
    "/usr/bin/cp": "",
}


@pytest.fixture
def host(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    for path, text in HEALTHY.items():
        tree.write(path, text)
    return tree


def looked(tree: Tree) -> dict[str, Outcome]:
    return {outcome.id: outcome for outcome in run(load(manifests.preflight), tree.node())}


def test_a_fit_host(host: Tree) -> None:
    found = looked(host)
    assert {outcome.id for outcome in found.values() if outcome.status is Status.FAILED} == set()
    assert {o.id for o in found.values() if o.status is Status.UNKNOWN} == {"socket-unclear"}


@pytest.mark.parametrize(
    ("id_", "path", "text"),
    [
        ("machine-size", "/proc/cpuinfo", "processor\t: 0\n"),
        ("machine-size", "/proc/meminfo", "MemTotal:        1000000 kB\n"),
        ("swap-now", "/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 2097148 0 -2\n"),
        ("swap-at-boot", "/etc/fstab", "UUID=2 none swap sw 0 0\n"),
        ("swap-at-boot", "/etc/systemd/system/swapfile.swap", "[Swap]\nWhat=/swapfile\n"),
        ("forwarding-off", "/proc/sys/net/ipv4/ip_forward", "0\n"),
        ("forwarding-off", "/etc/sysctl.d/99-zz-hardening.conf", "net.ipv4.ip_forward=0\n"),
        ("ports-taken", "/proc/net/tcp", "  sl\n   0: 00000000:192B 00000000:0000 0A 0 0 0 0 0 7\n"),
        ("name-unresolved", "/etc/hosts", "127.0.0.1 localhost\n"),
        ("name-unresolved", "/etc/hosts", "127.0.1.1 w-1\n"),
        ("name-unresolved", "/etc/hostname", "My_Node\n"),
        ("kernel-too-old", "/proc/sys/kernel/osrelease", "4.18.0-553.el8\n"),
        ("kernel-too-old", "/proc/sys/kernel/osrelease", "5.11.0\n"),
        ("firewall-active", "/etc/systemd/system/multi-user.target.wants/firewalld.service", ""),
        ("proxy-unexcepted", "/etc/environment", 'HTTPS_PROXY="http://proxy:3128"\nNO_PROXY="localhost"\n'),
        ("leftovers", "/etc/kubernetes/manifests/kube-apiserver.yaml", "kind: Pod\n"),
        ("leftovers", "/var/lib/etcd/member/snap/db", ""),
        ("cgroup-drivers-differ", "/etc/containerd/config.toml", "version = 2\n"),
    ],
)
def test_what_a_host_lacks(host: Tree, id_: str, path: str, text: str) -> None:
    host.write(path, text)
    assert looked(host)[id_].status is Status.FAILED


@pytest.mark.parametrize(
    ("id_", "gone"),
    [
        ("programs-missing", "/usr/sbin/losetup"),
        ("forwarding-off", "/etc/sysctl.d/99-kubernetes.conf"),
        ("service-not-enabled", "/etc/systemd/system/multi-user.target.wants/kubelet.service"),
    ],
)
def test_what_is_not_there(host: Tree, id_: str, gone: str) -> None:
    host.remove(gone)
    assert looked(host)[id_].status is Status.FAILED


def test_no_time_unit(host: Tree) -> None:
    host.remove("/etc/systemd/system/multi-user.target.wants/chrony.service")
    host.remove("/etc/systemd/system/multi-user.target.wants/kubelet.service")
    assert looked(host)["clock-unsynchronised"].status is Status.UNKNOWN
    host.write("/etc/systemd/system/multi-user.target.wants/cron.service", "")  # other units are there
    assert looked(host)["clock-unsynchronised"].status is Status.FAILED


def test_cgroup_v1_and_a_bridge_without_its_module(host: Tree) -> None:
    host.remove("/sys/fs/cgroup/cgroup.controllers")
    host.write("/proc/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n")
    host.write("/etc/cni/net.d/10-flannel.conflist", '{"plugins": [{"type": "flannel"}]}')
    assert looked(host)["cgroup-version"].status is Status.FAILED
    assert looked(host)["kernel-modules-missing"].status is Status.PASSED
    host.write("/proc/modules", "overlay 1 0 - Live 0x0\n")
    assert looked(host)["kernel-modules-missing"].status is Status.FAILED


def test_swap_that_the_kubelet_tolerates(host: Tree) -> None:
    host.write("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 2097148 0 -2\n")
    host.write(
        "/var/lib/kubelet/config.yaml",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nfailSwapOn: false\n",
    )
    assert looked(host)["swap-now"].findings[0].severity is Severity.INFO


def test_an_empty_tree_knows_nothing_and_passes_nothing_by_silence(tmp_path: Path) -> None:
    found = looked(Tree(tmp_path))
    silent = {"firewall-active", "leftovers", "proxy-unexcepted", "swap-at-boot"}
    for outcome in found.values():
        assert outcome.status is not Status.BROKEN, outcome
        assert outcome.id in silent or outcome.status in {Status.UNKNOWN, Status.SKIPPED}, outcome


def test_every_item_explains_itself() -> None:
    for check in load(manifests.preflight):
        assert "Fix:" in check.explanation, check.id
