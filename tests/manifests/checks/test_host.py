"""The host below Kubernetes, and what runs on it: a healthy node passes, each fault is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drtool.commands.check import check_together, judged
from drtool.core.report import Finding, Severity, Status
from drtool.host.root import Root
from manifests.host.clones import compare
from tests.builders.tree import NOW, Tree, laid, outcomes

KUBELET = "/var/lib/kubelet/config.yaml"
MOUNTS = "/dev/vda / ext4 rw,relatime 0 0\nproc /proc proc rw 0 0\n"
HEADER = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
GIB = 1 << 30
EVERY = "0.0.0.0"  # noqa: S104 - what a listener shows


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def causes(tree: Tree) -> tuple[str, ...]:
    return judged(tree.node()).verdict.root_causes


def status(tree: Tree, id_: str) -> Status:
    return outcomes(tree.node())[id_].status


def findings(tree: Tree, id_: str) -> tuple[Finding, ...]:
    return outcomes(tree.node())[id_].findings


def add(tree: Tree, text: str) -> None:
    tree.write(KUBELET, tree.read(KUBELET) + text)


def filesystem(tree: Tree, mount: str, free: float, inodes_free: int = 900) -> None:
    """`free` in GiB of 100."""
    item = {"mount": mount, "size": 100 * GIB, "free": int(free * GIB), "inodes": 1000, "inodesFree": inodes_free}
    tree.write("/drtool/filesystems.json", json.dumps([item]))


# ---- swap


def test_swap_is_the_cause_unless_the_kubelet_is_told_to_bear_it(tree: Tree) -> None:
    assert status(tree, "swap-active") is Status.PASSED
    tree.write("/proc/swaps", HEADER + "/dev/dm-1   partition\t2097148\t\t0\t\t-2\n")
    assert causes(tree) == ("swap-active",)
    add(tree, "failSwapOn: false\n")
    assert causes(tree) == ()


@pytest.mark.parametrize(
    ("line", "fires"),
    [
        ("UUID=1 none swap sw 0 0\n", True),
        ("# UUID=1 none swap sw 0 0\n", False),
        ("UUID=1 none swap sw,noauto 0 0\n", False),
        ("UUID=1 /data ext4 defaults 0 0\n", False),
    ],
)
def test_swap_of_the_next_boot_is_a_risk(tree: Tree, line: str, fires: bool) -> None:
    tree.write("/etc/fstab", line)
    assert [f.severity for f in findings(tree, "swap-active")] == ([Severity.WARNING] if fires else [])


def test_a_swap_unit_counts_unless_it_is_masked(tree: Tree) -> None:
    unit = tree.place("/etc/systemd/system/dev-sda2.swap")
    tree.write("/etc/systemd/system/dev-sda2.swap", "[Swap]\nWhat=/dev/sda2\n")
    assert len(findings(tree, "swap-active")) == 1
    unit.unlink()
    unit.symlink_to("/dev/null")
    assert not findings(tree, "swap-active")


def test_compressed_swap_is_an_error_once_the_kubelet_says_so(tree: Tree) -> None:
    tree.write("/proc/swaps", HEADER + "/dev/zram0   partition\t8388604\t\t0\t\t100\n")
    assert causes(tree) == ()
    tree.journal("kubelet", 'E1214 run.go:72] "command failed" err="running with swap on is not supported, please"')
    assert causes(tree) == ("swap-active",)


# ---- cgroups, sysctls, limits


@pytest.mark.parametrize(
    ("controllers", "missing"), [("cpuset cpu io memory pids", ""), ("cpuset cpu io pids", "memory")]
)
def test_controllers_of_cgroup_v2(tree: Tree, controllers: str, missing: str) -> None:
    tree.write("/sys/fs/cgroup/cgroup.controllers", controllers + "\n")
    tree.write("/proc/cmdline", "console=serial0 root=/dev/mmcblk0p2\n")
    assert causes(tree) == (("cgroup-controller-missing",) if missing else ())


def test_controllers_of_cgroup_v1(tree: Tree) -> None:
    rows = {"cpuset": 1, "cpu": 1, "memory": 0, "pids": 1}
    table = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
    tree.write("/proc/cgroups", table + "".join(f"{name}\t1\t40\t{on}\n" for name, on in rows.items()))
    (finding,) = findings(tree, "cgroup-controller-missing")
    assert "no memory controller" in finding.title
    assert finding.evidence[0].line == 4


def test_protected_kernel_settings(tree: Tree) -> None:
    for name, value in (("vm/overcommit_memory", "0"), ("kernel/panic", "10"), ("kernel/panic_on_oops", "1")):
        tree.write(f"/proc/sys/{name}", value + "\n")
    assert status(tree, "sysctl-protect-kernel") is Status.PASSED
    add(tree, "protectKernelDefaults: true\n")
    assert causes(tree) == ("sysctl-protect-kernel",)
    assert findings(tree, "sysctl-protect-kernel")[0].title == (
        "vm.overcommit_memory is 0, and the kubelet insists on 1"
    )


def test_forwarding_off_names_the_file_that_turns_it_off(tree: Tree) -> None:
    tree.write("/etc/sysctl.d/10-kubernetes.conf", "net.ipv4.ip_forward = 1\n")
    tree.write("/etc/sysctl.d/99-hardening.conf", "# hardening\nnet.ipv4.ip_forward=0\n")
    assert causes(tree) == ()
    tree.write("/proc/sys/net/ipv4/ip_forward", "0\n")
    assert causes(tree) == ("sysctl-forward-bridge",)
    evidence = findings(tree, "sysctl-forward-bridge")[0].evidence[1]
    assert (evidence.path, evidence.line) == ("/etc/sysctl.d/99-hardening.conf", 2)


@pytest.mark.parametrize(("plugin", "severity"), [("bridge", Severity.ERROR), ("cilium-cni", Severity.WARNING)])
def test_bridged_packets(tree: Tree, plugin: str, severity: Severity) -> None:
    tree.write("/etc/cni/net.d/10-net.conflist", f'{{"cniVersion": "1.0.0", "plugins": [{{"type": "{plugin}"}}]}}')
    tree.write("/proc/sys/net/bridge/bridge-nf-call-iptables", "0\n")
    assert [f.severity for f in findings(tree, "sysctl-forward-bridge")] == [severity]


@pytest.mark.parametrize(
    "line",
    [
        'W1214 fsnotify: "failed to create fsnotify watcher: too many open files"',
        'E1214 "Failed to start cAdvisor" err="inotify_init: too many open files"',
        'E1214 err="inotify_add_watch /sys/fs/cgroup/kubepods: no space left on device"',
    ],
)
def test_inotify_limits_are_the_cause_only_when_hit(tree: Tree, line: str) -> None:
    tree.write("/proc/sys/fs/inotify/max_user_instances", "128\n")
    tree.journal("kubelet", "I1214 all is well")
    assert causes(tree) == ()
    tree.journal("kubelet", line)
    assert causes(tree) == ("inotify-limits",)


# ---- disks


@pytest.mark.parametrize(
    ("mount", "free", "inodes_free", "cause"),
    [
        ("/", 40, 900, ()),
        ("/", 0.01, 900, ("disk-full",)),
        ("/var/lib/etcd", 0.01, 900, ("disk-full",)),
        ("/", 7, 900, ("disk-full",)),
        ("/boot", 0.01, 900, ()),
        ("/", 40, 0, ("inode-full",)),
        ("/", 40, 30, ("inode-full",)),
    ],
)
def test_room_on_the_file_systems(
    tree: Tree, mount: str, free: float, inodes_free: int, cause: tuple[str, ...]
) -> None:
    filesystem(tree, mount, free, inodes_free)
    assert causes(tree) == cause


def test_a_threshold_of_ones_own_counts(tree: Tree) -> None:
    filesystem(tree, "/", 7)
    add(tree, "evictionHard:\n  nodefs.available: 5%\n")
    assert causes(tree) == ()


def test_a_log_tells_of_a_disk_that_is_free_again(tree: Tree) -> None:
    filesystem(tree, "/", 40)
    tree.log("etcd", '{"level":"fatal","msg":"failed to save","error":"write /var/lib/etcd: no space left on device"}')
    assert causes(tree) == ("disk-full",)


def test_the_same_words_without_inodes_are_about_inodes(tree: Tree) -> None:
    filesystem(tree, "/", 40, 0)
    tree.journal("kubelet", 'E1214 err="mkdir /var/lib/kubelet/pods/x: no space left on device"')
    assert causes(tree) == ("inode-full",)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ('I1 "Eviction manager: must evict pod(s) to reclaim" resourceName="ephemeral-storage"', ("disk-full",)),
        ("I1 eviction manager: must evict pod(s) to reclaim ephemeral-storage", ("disk-full",)),
        ('I1 "Eviction manager: must evict pod(s) to reclaim" resourceName="inodes"', ("inode-full",)),
        ('I1 "Eviction manager: must evict pod(s) to reclaim" resourceName="memory"', ()),
        ('I1 "Eviction manager: attempting to reclaim" resourceName="ephemeral-storage"', ("disk-full",)),
        ('I1 "Recording event message for node" node="cp-1" event="NodeHasDiskPressure"', ("disk-full",)),
        ('I1 "Recording event message for node" node="cp-1" event="NodeHasNoDiskPressure"', ()),
        ('I1 "Eviction manager: able to reduce resource pressure without evicting pods."', ()),
    ],
)
def test_evictions_tell_what_ran_out(tree: Tree, line: str, cause: tuple[str, ...]) -> None:
    tree.journal("kubelet", line)
    assert causes(tree) == cause


def test_a_disk_remounted_read_only(tree: Tree) -> None:
    tree.write("/proc/mounts", MOUNTS + "/dev/vdb /var/lib/etcd ext4 rw,relatime 0 0\n")
    assert status(tree, "fs-readonly") is Status.PASSED
    tree.write("/proc/mounts", MOUNTS + "/dev/vdb /var/lib/etcd ext4 ro,relatime 0 0\n")
    tree.journal("kernel", "EXT4-fs (vdb): Remounting filesystem read-only")
    assert causes(tree) == ("fs-readonly",)


def test_read_only_usr_is_fine(tree: Tree) -> None:
    tree.write("/proc/mounts", "/dev/vda / ext4 ro 0 0\n/dev/vdb /var ext4 rw 0 0\n/dev/vdc /usr ext4 ro 0 0\n")
    assert status(tree, "fs-readonly") is Status.PASSED


def test_the_disk_of_etcd_must_be_mounted(tree: Tree) -> None:
    tree.write("/etc/fstab", "UUID=1 / ext4 defaults 0 1\nUUID=2 /var/lib/etcd ext4 defaults 0 2\n")
    assert status(tree, "etcd-mount-missing") is Status.UNKNOWN
    tree.write("/proc/mounts", MOUNTS)
    assert causes(tree) == ("etcd-mount-missing",)
    tree.write("/proc/mounts", MOUNTS + "/dev/vdb /var/lib/etcd ext4 rw 0 0\n")
    assert status(tree, "etcd-mount-missing") is Status.PASSED


# ---- security modules, firewall


AVC = 'type=AVC msg=audit(1): avc:  denied  {{ write }} for pid=9 comm="{}" name="db" permissive={}\n'


@pytest.mark.parametrize(
    ("mode", "line", "fires"),
    [
        ("enforcing", AVC.format("etcd", 0), True),
        ("permissive", AVC.format("etcd", 0), False),
        ("enforcing", AVC.format("etcd", 1), False),
        ("enforcing", AVC.format("firefox", 0), False),
        ("enforcing", "", False),
    ],
)
def test_selinux(tree: Tree, mode: str, line: str, fires: bool) -> None:
    tree.write("/etc/selinux/config", f"SELINUX={mode}\n")
    tree.write("/var/log/audit/audit.log", line)
    assert causes(tree) == (("selinux-avc",) if fires else ())


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ('audit: apparmor="DENIED" operation="open" profile="runc" name="/x" comm="runc"', None),
        ('audit: apparmor="DENIED" profile="cri-containerd.apparmor.d" comm="nginx"', Severity.ERROR),
        ('audit: apparmor="DENIED" profile="snap.firefox.firefox" comm="firefox"', False),
    ],
)
def test_apparmor(tree: Tree, line: str, severity: Severity | bool | None) -> None:
    tree.journal("kernel", line)
    assert [f.severity for f in findings(tree, "apparmor-denied")] == ([] if severity is False else [severity])


def firewalld(tree: Tree, zone: str) -> None:
    tree.write("/etc/systemd/system/multi-user.target.wants/firewalld.service", "[Unit]\n")
    tree.write("/etc/firewalld/zones/public.xml", f"<zone>{zone}</zone>")


OPEN = '<port port="6443" protocol="tcp"/><port port="2379-2380" protocol="tcp"/><port port="10250" protocol="tcp"/>'
TIMEOUT = '{"level":"warn","msg":"prober","error":"dial tcp 192.0.2.112:2380: i/o timeout"}'


def test_closed_ports_with_time_outs_are_the_cause(tree: Tree) -> None:
    firewalld(tree, '<service name="ssh"/>')
    assert [f.severity for f in findings(tree, "firewall-blocks")] == [Severity.WARNING]
    tree.log("etcd", TIMEOUT)
    assert causes(tree) == ("firewall-blocks",)


@pytest.mark.parametrize(
    ("rules", "fires"),
    [
        ("-A ufw-user-input -p tcp --dport 22 -j ACCEPT\n", True),
        ("-A ufw-user-input -p tcp -m multiport --dports 6443,2379:2380,10250 -j ACCEPT\n", False),
        ("-A ufw-user-input -s 192.0.2.0/24 -j ACCEPT\n", False),
        ("-A ufw-user-input -p tcp --dport 6443 -j DROP\n", True),
    ],
)
def test_ufw(tree: Tree, rules: str, fires: bool) -> None:
    tree.write("/etc/ufw/ufw.conf", "ENABLED=yes\n")
    tree.write("/etc/ufw/user.rules", rules)
    tree.log("etcd", TIMEOUT)
    assert bool(findings(tree, "firewall-blocks")) is fires


@pytest.mark.parametrize(
    ("rule", "fires"),
    [("tcp dport { 22 } accept", True), ("tcp dport { 22, 6443, 2379-2380, 10250 } accept", False)],
)
def test_nftables(tree: Tree, rule: str, fires: bool) -> None:
    tree.write("/etc/systemd/system/sysinit.target.wants/nftables.service", "[Unit]\n")
    chain = f"chain input {{\n  type filter hook input priority 0; policy drop;\n  {rule}\n}}\n"
    tree.write("/etc/nftables.conf", f"table inet filter {{\n{chain}}}\n")
    tree.log("etcd", TIMEOUT)
    assert bool(findings(tree, "firewall-blocks")) is fires


def test_open_ports_are_fine_whatever_times_out(tree: Tree) -> None:
    firewalld(tree, OPEN)
    tree.log("etcd", TIMEOUT)
    assert not findings(tree, "firewall-blocks")


def test_a_refused_connection_is_no_firewall(tree: Tree) -> None:
    firewalld(tree, '<service name="ssh"/>')
    tree.log("etcd", '{"level":"warn","error":"dial tcp 192.0.2.112:2380: connect: connection refused"}')
    assert causes(tree) == ()


# ---- machine


def test_a_small_machine_is_a_risk(tree: Tree) -> None:
    tree.write("/proc/cpuinfo", "processor\t: 0\n")
    tree.write("/proc/meminfo", "MemTotal:        1014120 kB\n")
    assert [f.severity or Severity.WARNING for f in findings(tree, "cpu-or-memory-too-small")] == [Severity.WARNING] * 2


def test_an_unattended_upgrade_is_information(tree: Tree) -> None:
    tree.write(
        "/var/log/apt/history.log",
        "Start-Date: 2026-12-14  06:12:03\nCommandline: /usr/bin/unattended-upgrade\n"
        "Upgrade: containerd.io:amd64 (1.7.1, 1.7.2)\nEnd-Date: 2026-12-14  06:12:30\n\n"
        "Start-Date: 2026-12-14  07:00:00\nCommandline: apt install kubelet\nUpgrade: kubelet:amd64 (1, 2)\n",
    )
    assert len(findings(tree, "unattended-upgrade")) == 1
    assert causes(tree) == ()


def test_cloned_machines_are_told_apart_together(tmp_path: Path) -> None:
    first, second = laid(tmp_path / "a"), laid(tmp_path / "b")
    for tree in (first, second):
        tree.write("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    second.write("/etc/hostname", "cp-2\n")
    found = list(compare([first.node(), second.node()]))
    assert [finding.title for finding in found] == [
        "cp-1 and cp-2 have the same machine id: 0123456789abcdef0123456789abcdef"
    ]
    second.write("/etc/machine-id", "f" * 32 + "\n")
    assert list(compare([first.node(), second.node()])) == []


def test_clones_are_judged_with_the_nodes_beside_them(tmp_path: Path) -> None:
    first, second = laid(tmp_path / "a"), laid(tmp_path / "b")
    alone = {outcome.id: outcome for outcome in judged(first.node()).outcomes}
    assert alone["machine-identity-duplicate"].status is Status.SKIPPED
    together = check_together([Root(tree.root) for tree in (first, second)], NOW)
    for report in together:
        assert "machine-identity-duplicate" in report.verdict.root_causes


# ---- ports, containers, readiness


def listener(tree: Tree, address: str, port: int, command: str) -> None:
    item = {"address": address, "port": port, "pid": 7, "command": command}
    tree.write("/drtool/listeners.json", json.dumps([item]))


@pytest.mark.parametrize(
    ("address", "port", "command", "fires"),
    [
        (EVERY, 6443, "haproxy", True),
        (EVERY, 6443, "kube-apiserver", False),
        ("127.0.0.1", 10257, "kube-controller", False),
        (EVERY, 8443, "haproxy", False),
        ("192.0.2.111", 2380, "etcd", False),
        ("192.0.2.100", 2380, "haproxy", False),
        (EVERY, 10250, "node-exporter", True),
        ("::", 10250, "kubelet", False),
        (EVERY, 10256, "node-exporter", False),
    ],
)
def test_who_holds_the_ports(tree: Tree, address: str, port: int, command: str, fires: bool) -> None:
    listener(tree, address, port, command)
    assert causes(tree) == (("ports-in-use",) if fires else ())


def test_in_a_copied_tree_the_log_must_say_it(tree: Tree) -> None:
    tree.log(
        "kube-apiserver",
        'E1214 run.go:72] "command failed" err="listen tcp 0.0.0.0:6443: bind: address already in use"',
    )
    assert causes(tree) == ("ports-in-use",)


def container(name: str, state: str, code: int = 0, created: int = 1765750000) -> dict[str, object]:
    return {
        "id": f"{name}-{created}",
        "state": f"CONTAINER_{state}",
        "labels": {"io.kubernetes.container.name": name, "io.kubernetes.pod.namespace": "kube-system"},
        "createdAt": str(created * 10**9),
        "exitCode": code,
    }


def test_a_container_that_ended_is_a_symptom(tree: Tree) -> None:
    tree.write("/drtool/containers.json", json.dumps({"containers": [container("etcd", "EXITED", 1)]}))
    assert causes(tree) == ("container-exited",)
    assert findings(tree, "container-exited")[0].title == "etcd exited with status 1 and does not run"
    tree.set_flag("etcd", "cipher-suites", "TLS_FOO")
    assert causes(tree) == ("tls-option-invalid",)


def test_an_older_attempt_does_not_count(tree: Tree) -> None:
    both = [container("etcd", "EXITED", 1, 1765750000), container("etcd", "RUNNING", 0, 1765750100)]
    tree.write("/drtool/containers.json", json.dumps({"containers": both}))
    assert status(tree, "container-exited") is Status.PASSED


def test_last_words_in_a_copied_tree(tree: Tree) -> None:
    tree.log("kube-scheduler", "I1214 all is well")
    assert status(tree, "container-exited") is Status.PASSED
    tree.log("kube-scheduler", 'E1214 run.go:72] "command failed" err="no such file"')
    assert causes(tree) == ("container-exited",)


@pytest.mark.parametrize(
    "words",
    [
        "F1214 23:00:00.1 1 leaderelection.go:1] leaderelection lost",
        'E1214 run.go:72] "command failed" err="dial tcp 127.0.0.1:2379: connect: connection refused"',
        "F1214 instance.go:1] Unable to create storage backend: config",
    ],
)
def test_words_that_are_never_a_cause(tree: Tree, words: str) -> None:
    tree.log("kube-apiserver", words)
    assert causes(tree) == ()


def test_a_manifest_edited_since_leaves_old_words_behind(tree: Tree) -> None:
    tree.log("kube-scheduler", 'E1214 run.go:72] "command failed" err="x"', time="2026-01-01T00:00:00.000000000Z")
    assert status(tree, "container-exited") is Status.PASSED


def test_readiness_names_the_part_that_fails(tree: Tree) -> None:
    probe = {"component": "kube-apiserver", "kind": "http", "url": "https://192.0.2.111:6443/readyz", "status": 500}
    tree.write("/drtool/probes.json", json.dumps([{**probe, "ok": False, "failing": ["etcd"]}]))
    assert findings(tree, "component-not-ready")[0].title == "kube-apiserver is not ready: etcd"
    tree.write("/drtool/probes.json", json.dumps([{**probe, "ok": True}]))
    assert status(tree, "component-not-ready") is Status.PASSED


@pytest.mark.parametrize(("age", "attempt", "severity"), [(30, 0, Severity.WARNING), (900, 0, None), (30, 9, None)])
def test_a_program_that_has_just_started_may_not_be_ready(
    tree: Tree, age: int, attempt: int, severity: Severity | None
) -> None:
    made = container("kube-scheduler", "RUNNING", created=int(NOW.timestamp()) - age) | {
        "metadata": {"attempt": attempt}
    }
    tree.write("/drtool/containers.json", json.dumps({"containers": [made]}))
    probe = {"component": "kube-scheduler", "kind": "http", "url": "https://127.0.0.1:10259/readyz", "status": 500}
    tree.write("/drtool/probes.json", json.dumps([{**probe, "ok": False, "failing": ["sched-handler-sync"]}]))
    assert [finding.severity for finding in findings(tree, "component-not-ready")] == [severity]
