"""The kubelet, its configuration and the runtime it uses: a healthy node passes, each fault is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from drtool.commands.check import check_together, judged
from drtool.core.report import Finding, Outcome, Severity, Status
from drtool.host.root import Root
from manifests.kubeadm import Design
from manifests.node import Node
from tests.builders.tree import NOW, Tree, laid

KUBELET, FLAGS = "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env"
CONTAINERD = "/etc/containerd/config.toml"
RUNC = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n  SystemdCgroup = {}\n'


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = laid(tmp_path)
    tree.write("/drtool/versions.json", json.dumps({"kubelet": "v1.37.2", "containerd": "1.7.27", "crio": None}))
    tree.write(CONTAINERD, "version = 2\n" + RUNC.format("true"))
    return tree


def causes(tree: Tree) -> tuple[str, ...]:
    return judged(tree.node()).verdict.root_causes


def outcomes(node: Node) -> dict[str, Outcome]:
    return {outcome.id: outcome for outcome in judged(node).outcomes}


def status(tree: Tree, id_: str) -> Status:
    return outcomes(tree.node())[id_].status


def findings(tree: Tree, id_: str) -> tuple[Finding, ...]:
    return outcomes(tree.node())[id_].findings


def titles(tree: Tree, id_: str) -> list[str]:
    return [finding.title for finding in findings(tree, id_)]


def add(tree: Tree, text: str) -> None:
    tree.write(KUBELET, tree.read(KUBELET) + text)


def versions(tree: Tree, **told: str) -> None:
    tree.write("/drtool/versions.json", json.dumps({"kubelet": "v1.37.2", **told}))


def test_a_healthy_node_passes(tree: Tree) -> None:
    found = outcomes(tree.node())
    assert causes(tree) == ()
    for id_ in (
        "kubelet-config-missing",
        "kubelet-config-invalid",
        "kubelet-flag-removed",
        "runtime-endpoint-wrong",
        "manager-state-mismatch",
        "node-name-mismatch",
        "version-skew",
        "cgroup-driver-mismatch",
    ):
        assert found[id_].status is Status.PASSED, found[id_]
    for id_ in ("kubelet-not-running", "runtime-not-running"):
        assert found[id_].status is Status.SKIPPED, found[id_]
    for id_ in ("cgroup-v1-vs-kubelet", "resolvconf-missing", "resolvconf-loop"):
        assert found[id_].status is Status.UNKNOWN, found[id_]


# ---- kubelet-config-missing, kubelet-config-invalid


def test_a_joined_node_without_its_configuration(tree: Tree) -> None:
    tree.remove(KUBELET)
    assert causes(tree) == ("kubelet-config-missing",)


def test_settings_that_only_the_backup_still_has(tree: Tree) -> None:
    backup = "/etc/kubernetes/tmp/kubeadm-kubelet-config2026-11-30/config.yaml"
    tree.write(backup, tree.read(KUBELET))
    assert causes(tree) == ()
    tree.write(backup, tree.read(KUBELET) + "resolvConf: /run/systemd/resolve/resolv.conf\nsyncFrequency: 0s\n")
    assert titles(tree, "kubelet-config-missing") == [f"{KUBELET} has lost resolvConf, which its backup still has"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("apiVersion: kubelet.config.k8s.io/v1beta1\n\tkind: KubeletConfiguration\n", "cannot read"),
        ("apiVersion: v1\nkind: Config\nclusters: []\n", "Config, v1"),
        ("cgroupDriver: systemd\nstaticPodPath: /etc/kubernetes/manifests\n", "no kind, no apiVersion"),
        ("apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n", "kubelet.config.k8s.io/v1beta1"),
    ],
)
def test_a_file_that_is_no_kubelet_configuration(tree: Tree, text: str, word: str) -> None:
    tree.write(KUBELET, text)
    assert causes(tree)[:1] == ("kubelet-config-invalid",)
    assert word in titles(tree, "kubelet-config-invalid")[0]


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("clusterDNS: 10.96.0.10\n", None),
        ("evictionHard: []\n", None),
        ("evictionHard: {memory.available: 100Mi, pid.available: 1000}\n", None),
        ("evictionHard: {memory.available: 100Mi, pid.available: '1000'}\n", False),
        ("maxPods: '250'\n", None),
        ("syncFrequency: 60\n", None),
        ("syncFrequency: '60'\n", None),
        ("syncFrequency: 1m30s\n", False),
        ("featureGates: {NodeSwap: 'true'}\n", None),
        ("memorySwap: NoSwap\n", None),
        ("fooBar: 1\n", Severity.ERROR),
        ("failSwapOn: true\nfailSwapOn: true\n", Severity.ERROR),
        ("memorySwap:\n  swapBehaviour: NoSwap\n", Severity.ERROR),
        ("memorySwap:\n  swapBehavior: NoSwap\n", False),
    ],
)
def test_fields_that_this_kubelet_does_not_take(tree: Tree, text: str, severity: Severity | bool | None) -> None:
    tree.sub(KUBELET, r"clusterDNS:\n- .*\n", "")
    add(tree, text)
    found = [finding.severity for finding in findings(tree, "kubelet-config-invalid")]
    assert found == ([] if severity is False else [severity])


# What the kubelets 1.36 and 1.37 answered; the eviction, manager and sysctl rules from their packages.
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("memorySwap: {swapBehavior: UnlimitedSwap}\n", "swapBehavior is 'UnlimitedSwap'"),
        ('memorySwap: {swapBehavior: ""}\n', ""),
        ("imageGCHighThresholdPercent: 70\n", "imageGCLowThresholdPercent (80) must be below"),
        ("imageGCHighThresholdPercent: 81\n", ""),
        ("imageGCLowThresholdPercent: 101\n", "at most 100"),
        ("enforceNodeAllocatable: [pods, system-reserved]\n", "needs systemReservedCgroup"),
        ("enforceNodeAllocatable: [pods, system-reserved]\nsystemReservedCgroup: /system.slice\n", ""),
        ("enforceNodeAllocatable: [pods, pods]\n", "names pods twice"),
        ("enforceNodeAllocatable: [none, pods]\n", "nothing beside none"),
        ("enforceNodeAllocatable: [pod]\n", "does not take 'pod'"),
        ("cgroupsPerQOS: false\n", "cgroupsPerQOS: false needs"),
        ("cgroupsPerQOS: false\nenforceNodeAllocatable: []\n", ""),
        ("reservedSystemCPUs: 0-1\nsystemReservedCgroup: /s\n", "exclude each other"),
        ("systemCgroups: /s\n", "needs cgroupRoot"),
        ("topologyManagerPolicy: single-numa\n", "single-numa-node"),
        ("logging: {format: JSON}\n", "text, json"),
        ("port: 0\nhealthzPort: 0\nreadOnlyPort: 0\nmaxPods: 0\nnodeLeaseDurationSeconds: 0\n", ""),
        ("readOnlyPort: 65536\n", "at most 65535"),
        ("maxPods: -1\n", "at least 0"),
        ("containerLogMaxFiles: 1\n", "at least 2"),
        ("containerLogMaxSize: 10MB\n", "no quantity such as 10Mi"),
        ("containerLogMonitorInterval: 2s\n", "at least 3s"),
        ("cpuCFSQuotaPeriod: 2s\n", "at most 1s"),
        ("cpuCFSQuotaPeriod: 5ms\n", ""),
        ("maxParallelImagePulls: 5\n", ""),
        ("maxParallelImagePulls: 5\nserializeImagePulls: true\n", "serializeImagePulls: false"),
        ("imageMaximumGCAge: 2m\n", "above imageMinimumGCAge (120s)"),
        ("imageMaximumGCAge: 0s\nimageMinimumGCAge: 0s\n", ""),
        ("shutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 30s\n", "may not be above"),
        ("shutdownGracePeriod: 500ms\n", "0 or at least 1s"),
        ("shutdownGracePeriod: 0s\nshutdownGracePeriodCriticalPods: 0s\n", ""),
        ("crashLoopBackOff: {maxContainerRestartPeriod: 0s}\n", "at least 1s"),
        ("crashLoopBackOff: {maxContainerRestartPeriod: 10s}\n", ""),
        ("memoryReservationPolicy: TieredReservation\n", ""),
        (
            "memoryReservationPolicy: TieredReservation\nfeatureGates: {MemoryQoS: false}\n",
            "needs the feature gate MemoryQoS",
        ),
        ("registerWithTaints:\n- {key: a, effect: Noschedule}\n", "effect of a taint is 'Noschedule'"),
        ("registerWithTaints:\n- {key: node-role.kubernetes.io/control-plane, effect: NoSchedule}\n- {key: a}\n", ""),
        ("runOnce: true\n", "refused since 1.32"),
        ("podLogsDir: /var/log/pods/\n", "clean path such as /var/log/pods"),
        ("cpuManagerPolicy: static\n", "needs cpu in kubeReserved"),
        ("cpuManagerPolicy: static\nsystemReserved: {cpu: '0'}\n", "needs cpu in kubeReserved"),
        ("cpuManagerPolicy: static\nsystemReserved: {cpu: 200m}\n", ""),
        ("cpuManagerPolicy: static\nreservedSystemCPUs: '0'\n", ""),
        ("memoryManagerPolicy: Static\n", "needs reservedMemory"),
        ("evictionHard: {memory.avail: 200Mi}\n", "no signal 'memory.avail'"),
        ("evictionHard: {memory.available: 0%, nodefs.available: 100%, containerfs.available: 5%}\n", ""),
        ("evictionHard: {memory.available: 105%}\n", "neither a quantity"),
        ("evictionHard: {memory.available: 100MB}\n", "neither a quantity"),
        ("evictionSoft: {memory.available: 500Mi}\n", "needs a period"),
        ("evictionSoft: {memory.available: 5%}\nevictionSoftGracePeriod: {memory.available: 1m30s}\n", ""),
        ("evictionSoftGracePeriod: {memory.available: '90'}\n", "a duration such as"),
        ("evictionMinimumReclaim: {nodefs.available: '0', imagefs.available: 150%}\n", ""),
        ("kubeReserved: {cpu: 500mcpu}\n", "no quantity"),
        ("kubeReserved: {cpus: 500m}\n", "not 'cpus'"),
        ("allowedUnsafeSysctls: [net.core.somaxconn, kernel.msg*, vm.max_map_count]\n", "vm.max_map_count"),
    ],
)
def test_values_that_the_kubelet_refuses(tree: Tree, text: str, word: str) -> None:
    line = tree.read(KUBELET).count("\n") + 1
    for field in ("memorySwap", "imageMinimumGCAge", "shutdownGracePeriod"):
        if re.search(rf"(?m)^{field}", tree.read(KUBELET)) and field in text:
            tree.sub(KUBELET, rf"(?m)^{field}\w*:.*\n", "")
            line = tree.read(KUBELET).count("\n") + 1
    add(tree, text)
    found = findings(tree, "kubelet-config-invalid")
    assert len(found) == bool(word)
    assert all(word in finding.title for finding in found)
    assert all((finding.evidence[0].line or 0) >= line for finding in found)
    assert causes(tree) == (("kubelet-config-invalid",) if word else ())


def test_a_flag_is_judged_in_place_of_its_field(tree: Tree) -> None:
    add(tree, "imageGCHighThresholdPercent: 70\nevictionHard: {memory.avail: 1Gi}\n")
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--image-gc-low-threshold=60 --eviction-hard=memory.available<100Mi"\n')
    assert titles(tree, "kubelet-config-invalid") == []
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--image-gc-low-threshold=75 --eviction-hard=memory.available<100Mi"\n')
    (finding,) = findings(tree, "kubelet-config-invalid")
    assert finding.evidence[0].path == FLAGS


def test_flags_that_are_given_twice_add_up_and_gates_are_merged_with_the_files(tree: Tree) -> None:
    """As the kubelet 1.37's own list of its flags has it."""
    flags = "--kube-reserved=cpu=500m --kube-reserved=memory=1Gi --feature-gates=MemoryQoS=true"
    tree.write(FLAGS, f'KUBELET_KUBEADM_ARGS="{flags} --feature-gates=NodeLogQuery=true"\n')
    add(tree, "cpuManagerPolicy: static\nmemoryReservationPolicy: TieredReservation\n")
    add(tree, "enableSystemLogQuery: true\nenableSystemLogHandler: true\nfeatureGates: {MemoryQoS: false}\n")
    assert titles(tree, "kubelet-config-invalid") == []
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--kube-reserved=memory=1Gi --feature-gates=NodeLogQuery=true"\n')
    assert len(titles(tree, "kubelet-config-invalid")) == 2


def test_a_rule_of_later_releases_is_not_held_against_an_older_kubelet(tree: Tree) -> None:
    add(tree, "memorySwap: {swapBehavior: UnlimitedSwap}\nfeatureGates: {NodeSwap: true}\n")
    versions(tree, kubelet="v1.29.15")
    assert titles(tree, "kubelet-config-invalid") == []
    versions(tree, kubelet="v1.30.14")
    assert len(titles(tree, "kubelet-config-invalid")) == 1
    tree.replace(KUBELET, "featureGates: {NodeSwap: true}\n", "")
    versions(tree, kubelet="v1.29.15")
    assert "needs the feature gate NodeSwap" in titles(tree, "kubelet-config-invalid")[0]


def test_where_the_kubelets_version_is_only_likely_a_rule_must_hold_for_all_that_may_run(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(kubernetes="v1.34.4"))
    add(tree, "runOnce: true\n")
    assert causes(tree) == ()  # the kubelet may be 1.31
    versions(tree, kubelet="v1.32.13")
    assert causes(tree) == ("kubelet-config-invalid",)


def test_an_empty_field_of_a_newer_kubeadm_is_no_loss_to_an_older_kubelet(tree: Tree) -> None:
    versions(tree, kubelet="v1.31.14")
    add(tree, "crashLoopBackOff: {}\n")
    assert titles(tree, "kubelet-config-invalid") == []
    tree.replace(KUBELET, "crashLoopBackOff: {}", "crashLoopBackOff: {maxContainerRestartPeriod: 10s}")
    (title,) = titles(tree, "kubelet-config-invalid")
    assert title.startswith("crashLoopBackOff in ")


# ---- flags, endpoint, version


def test_a_removed_flag_in_an_environment_file(tree: Tree) -> None:
    tree.write("/etc/default/kubelet", 'KUBELET_EXTRA_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.9"\n')
    assert causes(tree) == ("kubelet-flag-removed",)
    (finding,) = findings(tree, "kubelet-flag-removed")
    assert finding.evidence[0].path == "/etc/default/kubelet"
    assert "was removed in 1.35" in finding.title


def test_the_same_flag_is_legal_for_an_older_kubelet(tree: Tree) -> None:
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.9"\n')
    versions(tree, kubelet="v1.34.4")
    assert status(tree, "kubelet-flag-removed") is Status.PASSED
    assert causes(tree) == ()


def test_without_another_word_the_kubelet_is_taken_to_be_as_new_as_the_api_server(tree: Tree) -> None:
    tree.remove("/drtool/versions.json")
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--network-plugin=cni"\n')
    assert causes(tree) == ("kubelet-flag-removed",)
    tree.write("/var/log/dpkg.log", "2026-11-30 04:00:00 status installed kubelet:amd64 1.36.1-1.1\n")
    assert "1.36.1" in findings(tree, "kubelet-flag-removed")[0].evidence[1].text


@pytest.mark.parametrize(
    ("endpoint", "fires"),
    [
        ("unix:///var/run/dockershim.sock", True),
        ("unix://unix:///run/containerd/containerd.sock", True),
        ("unix:///var/run/crio/crio.sock", True),
        ("http:///run/containerd/containerd.sock", True),
        ("unix:///run/containerd/containerd.sock", False),
        ("/run/containerd/containerd.sock", False),
        ("unix:///run/other/other.sock", False),
    ],
)
def test_the_runtimes_endpoint(tree: Tree, endpoint: str, fires: bool) -> None:
    tree.sub(KUBELET, r"containerRuntimeEndpoint: .*", f"containerRuntimeEndpoint: {endpoint}")
    assert bool(findings(tree, "runtime-endpoint-wrong")) is fires


def test_two_runtimes_side_by_side_are_fine(tree: Tree) -> None:
    tree.write("/etc/crio/crio.conf", '[crio.runtime]\ncgroup_manager = "systemd"\n')
    assert causes(tree) == ()


def test_a_kubelet_newer_than_the_api_server(tree: Tree) -> None:
    versions(tree, kubelet="v1.38.0")
    assert findings(tree, "version-skew")[0].title == "The kubelet 1.38.0 is newer than the API server 1.37.2"


@pytest.mark.parametrize(("kubelet", "fires"), [("v1.34.0", False), ("v1.33.9", True), ("v1.37.9", False)])
def test_a_kubelet_may_be_three_minors_older(tree: Tree, kubelet: str, fires: bool) -> None:
    versions(tree, kubelet=kubelet)
    assert bool(findings(tree, "version-skew")) is fires


def test_before_125_a_kubelet_may_be_two_minors_older(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(kubernetes="v1.24.2", etcd="3.5.3-0"))
    versions(tree, kubelet="v1.21.0")
    assert len(findings(tree, "version-skew")) == 1


# ---- names, states, resolvers


@pytest.mark.parametrize(
    ("hostname", "fires"), [("cp-9", True), ("CP-1", False), ("cp-1.example.org", False), ("cp-10", True)]
)
def test_the_hostname_and_the_certificate(tree: Tree, hostname: str, fires: bool) -> None:
    tree.write("/etc/hostname", hostname + "\n")
    assert bool(findings(tree, "node-name-mismatch")) is fires


def test_a_full_name_that_the_kernel_has_is_another_node(tree: Tree) -> None:
    tree.write("/etc/hostname", "cp-1.example.org\n")
    tree.write("/proc/sys/kernel/hostname", "cp-1.example.org\n")
    assert causes(tree) == ("node-name-mismatch",)
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--hostname-override cp-1"\n')
    assert causes(tree) == ()


def test_an_override_keeps_the_old_name(tree: Tree) -> None:
    tree.write("/etc/hostname", "renamed\n")
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--hostname-override=cp-1"\n')
    assert causes(tree) == ()


def test_a_policy_that_its_state_file_does_not_have(tree: Tree) -> None:
    tree.write("/var/lib/kubelet/cpu_manager_state", '{"policyName":"none","defaultCpuSet":"","checksum":1}')
    assert status(tree, "manager-state-mismatch") is Status.PASSED
    add(tree, "cpuManagerPolicy: static\nsystemReserved: {cpu: 200m}\n")
    assert causes(tree) == ("manager-state-mismatch",)


def test_state_of_processors_that_are_gone(tree: Tree) -> None:
    inner = json.dumps({"policyName": "static", "defaultCpuSet": "0-7"})
    tree.write("/var/lib/kubelet/cpu_manager_state", json.dumps({"data": inner, "checksum": 1}))
    tree.write("/proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n")
    add(tree, "cpuManagerPolicy: static\n")
    assert "names CPU 2, and the host has 2" in titles(tree, "manager-state-mismatch")[0]


def test_an_absent_resolv_conf_needs_a_log_line(tree: Tree) -> None:
    path = "/run/systemd/resolve/resolv.conf"
    add(tree, f"resolvConf: {path}\n")
    assert status(tree, "resolvconf-missing") is Status.UNKNOWN
    tree.journal("kubelet", f'E1214 pod_workers.go:1] "Error syncing pod" err="open {path}: no such file or directory"')
    assert causes(tree) == ("resolvconf-missing",)


def test_a_resolver_on_loopback(tree: Tree) -> None:
    tree.write("/etc/resolv.conf", "nameserver 127.0.0.53\n")
    assert causes(tree) == ("resolvconf-loop",)
    tree.write("/etc/resolv.conf", "nameserver 192.0.2.53\n")
    assert causes(tree) == ()


# ---- cgroups


def test_the_drivers_of_kubelet_and_containerd(tree: Tree) -> None:
    tree.write(CONTAINERD, "version = 2\n" + RUNC.format("false"))
    assert causes(tree) == ("cgroup-driver-mismatch",)


def test_a_setting_in_the_table_of_another_version_is_ignored(tree: Tree) -> None:
    tree.write(CONTAINERD, RUNC.format("true"))
    assert titles(tree, "cgroup-driver-mismatch") == [
        "The kubelet's cgroup driver is systemd, containerd's is cgroupfs"
    ]


def test_a_runtime_that_tells_its_driver_decides(tree: Tree) -> None:
    tree.write(CONTAINERD, "version = 3\n")
    versions(tree, containerd="2.1.4")
    assert status(tree, "cgroup-driver-mismatch") is Status.PASSED


def test_containerd_3_tables(tree: Tree) -> None:
    table = RUNC.replace("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime").format("true")
    tree.write(CONTAINERD, "version = 3\n" + table)
    versions(tree, containerd="2.1.4", kubelet="v1.27.3")
    assert not findings(tree, "cgroup-driver-mismatch")


def test_crio_is_systemd_unless_it_says_otherwise(tree: Tree) -> None:
    tree.sub(KUBELET, r"containerRuntimeEndpoint: .*", "containerRuntimeEndpoint: unix:///var/run/crio/crio.sock")
    tree.write("/etc/crio/crio.conf", "[crio.runtime]\n")
    assert causes(tree) == ()
    tree.write("/etc/crio/crio.conf.d/10.conf", '[crio.runtime]\ncgroup_manager = "cgroupfs"\n')
    assert causes(tree) == ("cgroup-driver-mismatch",)


def test_cgroup_v1_is_refused_since_135(tree: Tree) -> None:
    tree.write("/proc/mounts", "/dev/vda / ext4 rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n")
    assert causes(tree) == ("cgroup-v1-vs-kubelet",)
    add(tree, "failCgroupV1: false\n")
    assert causes(tree) == ()


def test_cgroup_v1_is_fine_for_an_older_kubelet(tree: Tree) -> None:
    tree.write("/proc/mounts", "/dev/vda / ext4 rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n")
    versions(tree, kubelet="v1.34.1")
    assert status(tree, "cgroup-v1-vs-kubelet") is Status.PASSED


def test_cgroup_v2_is_too_new_for_a_kubelet_before_119(tree: Tree) -> None:
    tree.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory hugetlb pids\n")
    versions(tree, kubelet="v1.18.20")
    assert len(findings(tree, "cgroup-v1-vs-kubelet")) == 1


# ---- what runs


def test_a_kubelet_that_is_down_is_a_consequence_of_what_stops_it(tree: Tree) -> None:
    tree.write("/drtool/units.json", '[{"name": "kubelet.service", "active": "failed", "sub": "failed"}]')
    assert causes(tree) == ("kubelet-not-running",)
    tree.write("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 2097148 0 -2\n")
    assert causes(tree) == ("swap-active",)


def test_a_runtime_that_does_not_answer(tree: Tree) -> None:
    probe = {"component": "container-runtime", "kind": "cri", "url": "unix:///run/containerd/containerd.sock"}
    tree.write("/drtool/probes.json", json.dumps([{**probe, "ok": False, "error": "Connection refused"}]))
    assert causes(tree) == ("runtime-not-running",)
    tree.write("/drtool/probes.json", json.dumps([{**probe, "ok": True}]))
    assert status(tree, "runtime-not-running") is Status.PASSED


def test_an_active_unit_is_healthy(tree: Tree) -> None:
    units = [{"name": f"{name}.service", "active": "active", "sub": "running"} for name in ("kubelet", "containerd")]
    tree.write("/drtool/units.json", json.dumps(units))
    assert status(tree, "kubelet-not-running") is Status.PASSED
    assert status(tree, "runtime-not-running") is Status.PASSED


def test_drop_ins_of_the_configuration_win_over_it(tree: Tree) -> None:
    tree.write("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda2 partition 2097148 0 -2\n")
    assert causes(tree) == ("swap-active",)
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--config-dir=/etc/kubernetes/kubelet.conf.d"\n')
    kind = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    tree.write("/etc/kubernetes/kubelet.conf.d/10-swap.conf", kind + "failSwapOn: true\n")
    tree.write("/etc/kubernetes/kubelet.conf.d/20-swap.conf", kind + "failSwapOn: false\n")
    tree.write("/etc/kubernetes/kubelet.conf.d/30-swap.yaml", kind + "failSwapOn: true\n")
    assert causes(tree) == ()


@pytest.mark.parametrize("text", ["maxPods: 200\n", "kind: KubeletConfiguration\n\tmaxPods: 200\n", ""])
def test_each_drop_in_of_the_configuration_is_read_by_itself(tree: Tree, text: str) -> None:
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--config-dir=/etc/kubernetes/kubelet.conf.d"\n')
    tree.write("/etc/kubernetes/kubelet.conf.d/10-pods.yaml", text)
    assert causes(tree) == ()
    tree.write("/etc/kubernetes/kubelet.conf.d/10-pods.conf", text)
    assert causes(tree) == ("kubelet-config-invalid",)


def test_a_new_kubelet_that_may_reach_an_old_api_server_by_the_endpoint(tmp_path: Path) -> None:
    members = {"cp-1": "192.0.2.111", "cp-2": "192.0.2.112"}
    designs = [
        Design(name=name, address=address, endpoint="192.0.2.100:6443", members=members, kubernetes=version)
        for (name, address), version in zip(members.items(), ("v1.37.2", "v1.36.3"), strict=True)
    ]
    first = laid(tmp_path / "one", designs[0])
    second = laid(tmp_path / "two", designs[1], first.authorities)
    for tree, kubelet in ((first, "v1.37.2"), (second, "v1.36.3")):
        versions(tree, kubelet=kubelet)
    reports = check_together([Root(first.root), Root(second.root)], NOW)
    titles = [[f.title for o in report.outcomes if o.id == "version-skew" for f in o.findings] for report in reports]
    assert titles == [["The kubelet 1.37.2 is newer than the API server 1.36.3 of cp-2"], []]
