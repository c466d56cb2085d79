"""Sections C, D, F, G, H, K, M and N of the incidents, as far as manifests, kubelet and host decide them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drtool.core.report import Status
from manifests.host.clones import compare
from manifests.kubeadm import Design
from tests.builders.tree import Tree, laid, outcomes
from tests.incidents.nodes import causes, each_single, faults, node_tree, warned

MANIFESTS = "/etc/kubernetes/manifests"
ETCD, APISERVER = f"{MANIFESTS}/etcd.yaml", f"{MANIFESTS}/kube-apiserver.yaml"
SCHEDULER, MANAGER = f"{MANIFESTS}/kube-scheduler.yaml", f"{MANIFESTS}/kube-controller-manager.yaml"
KUBELET, FLAGS = "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubeadm-flags.env"
RESOLV = "/run/systemd/resolve/resolv.conf"
CONTAINERD = "/etc/containerd/config.toml"


def add(tree: Tree, text: str) -> None:
    tree.write(KUBELET, tree.read(KUBELET) + text)


def versions(tree: Tree, **told: str) -> None:
    tree.write("/drtool/versions.json", json.dumps({"kubelet": "v1.37.2", **told}))


# ---- C, D


@each_single
def test_a_policy_put_among_the_manifests(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(f"{MANIFESTS}/audit-policy.yaml", "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: []\n")
    assert causes(tree) == ()
    assert warned(tree, "non-pod-file-in-manifests")


@each_single
def test_a_kubelet_upgraded_before_the_api_server(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.journal("kubelet", 'I1214 server.go:1] "Kubelet version" kubeletVersion="v1.38.0"')
    versions(tree, kubelet="v1.38.0")
    assert causes(tree) == ("version-skew",)


@each_single
def test_the_wrong_fix_for_it_a_gate_of_kubeadm(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.set_flag("kube-apiserver", "feature-gates", "ControlPlaneKubeletLocalMode=true")
    assert causes(tree) == ("feature-gate-unknown",)


def test_kube_vips_old_peer_file(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.write("/etc/kube-vip/config.yaml", "localPeer:\n  id: cp-1\nremotePeers:\n- id: cp-2\nvip: 192.0.2.100\n")
    assert causes(tree) == ("flag-unknown-or-removed",)


# ---- F


@each_single
def test_the_schedulers_address_flag(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.set_flag("kube-scheduler", "address", "127.0.0.1")
    tree.log("kube-scheduler", "Error: unknown flag: --address")
    assert causes(tree) == ("flag-unknown-or-removed",)


@each_single
def test_port_zero_of_old_times(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.set_flag("kube-controller-manager", "port", "0")
    assert causes(tree) == ("flag-unknown-or-removed",)


@each_single
def test_an_old_manifest_without_the_service_account_issuer(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.set_flag("kube-apiserver", "service-account-issuer", None)
    tree.set_flag("kube-apiserver", "service-account-signing-key-file", None)
    assert set(causes(tree)) <= {"flag-unknown-or-removed", "sa-issuer-changed"}
    assert causes(tree)


@each_single
def test_mirror_pods_denied_are_no_outage(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.journal("kubelet", 'E1214 "Failed creating a mirror pod" err="pods is forbidden: unable to admit pod: []"')
    assert causes(tree) == ()


@each_single
def test_anonymous_requests_off(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.set_flag("kube-apiserver", "anonymous-auth", "false")
    tree.journal("kubelet", "Liveness probe failed: HTTP probe failed with statuscode: 401")
    assert causes(tree) == ("probe-unauthorized",)


@each_single
def test_what_vim_leaves_behind(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(f"{MANIFESTS}/kube-apiserver.yaml~", tree.read(APISERVER))
    assert causes(tree) == ("duplicate-static-pod",)
    assert outcomes(tree.node())["editor-leftovers"].status is Status.FAILED


@each_single
def test_a_machine_made_smaller_than_its_pods(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: x\n")
    tree.sub(APISERVER, r"cpu: \d+m", "cpu: 1500m")
    tree.journal("kubelet", 'W1214 "Pod admission denied" podUID="1" reason="UnexpectedAdmissionError"')
    assert causes(tree) == ("requests-exceed-node",)


@each_single
def test_manifests_that_carry_a_proxy(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    env = (
        "    env:\n    - name: HTTP_PROXY\n      value: http://192.0.2.200:3128\n    - name: NO_PROXY\n      value: {}"
    )
    tree.sub(MANAGER, r"\n    image: ", "\n" + env.format("localhost") + "\n    image: ")
    assert causes(tree) == ("no-proxy-incomplete",)
    exempt = "192.0.2.0/24,198.51.100.0/24,10.96.0.0/12,10.244.0.0/16,.svc,.cluster.local"
    tree.replace(MANAGER, "value: localhost", f"value: {exempt}")
    assert causes(tree) == ()


@each_single
def test_a_proxy_in_the_kubelets_drop_in(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    drop_in = "/etc/systemd/system/kubelet.service.d/90-proxy.conf"
    tree.write(drop_in, '[Service]\nEnvironment="HTTPS_PROXY=http://192.0.2.200:3128" "NO_PROXY=localhost"\n')
    assert causes(tree) == ("no-proxy-incomplete",)


@each_single
def test_a_proxy_for_containerds_pulls_alone(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(
        "/etc/systemd/system/containerd.service.d/http-proxy.conf",
        '[Service]\nEnvironment="HTTPS_PROXY=http://192.0.2.200:3128"\n',
    )
    assert causes(tree) == ()


@each_single
def test_copies_of_etcd_that_fill_the_disk(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    for day in range(1, 9):
        tree.write(f"/etc/kubernetes/tmp/kubeadm-backup-etcd-2026-11-0{day}-00-00-00/etcd/member/snap/db", b"x")
    assert causes(tree) == ()
    size = {"mount": "/", "size": 40 << 30, "free": 5 << 20, "inodes": 1000, "inodesFree": 900}
    tree.write("/drtool/filesystems.json", json.dumps([size]))
    assert causes(tree) == ("disk-full",)


@each_single
def test_an_upgrade_that_stopped_half_way(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    for path in (MANAGER, SCHEDULER):
        tree.sub(path, r":v1\.37\.\d+", ":v1.36.3")
    tree.write("/etc/kubernetes/tmp/kubeadm-upgraded-manifests82/kube-scheduler.yaml", "kind: Pod\n")
    assert causes(tree) == ("image-inconsistent",)
    assert warned(tree, "upgrade-leftovers")


# ---- G


@each_single
def test_the_pause_image_flag_after_135(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.10"\n')
    tree.journal("kubelet", 'E1214 "command failed" err="failed to parse kubelet flag: unknown flag: --pod-infra"')
    assert "kubelet-flag-removed" in causes(tree)
    assert set(causes(tree)) == {"kubelet-flag-removed"}


def test_the_same_flag_up_to_134(tmp_path: Path) -> None:
    tree = node_tree("single-1.34", tmp_path)
    tree.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--pod-infra-container-image=registry.k8s.io/pause:3.10\n")
    assert causes(tree) == ()


@each_single
def test_a_package_without_kubeadm_upgrade_node(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.remove(KUBELET)
    assert causes(tree) == ("kubelet-config-missing",)


@pytest.mark.parametrize("name", ["made", "single-1.37"])
def test_containerds_default_cgroup_driver(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    runc = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n'
    tree.write(CONTAINERD, f"version = 2\n{runc}  SystemdCgroup = false\n")
    tree.journal("kubelet", 'I1214 "Pod sandbox changed, it will be killed and re-created." pod="kube-system/etcd"')
    assert causes(tree) == ("cgroup-driver-mismatch",)
    tree.write(CONTAINERD, f"{runc}  SystemdCgroup = true\n")  # no `version = 2`: a table that is not read
    assert causes(tree) == ("cgroup-driver-mismatch",)
    tree.write(CONTAINERD, f"version = 2\n{runc}  SystemdCgroup = true\n")
    assert causes(tree) == ()


def test_cgroup_v2_under_an_old_kubelet(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(kubernetes="v1.18.20", etcd="3.4.3-0"))
    tree.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
    versions(tree, kubelet="v1.18.20")
    assert "cgroup-v1-vs-kubelet" in causes(tree)


@each_single
def test_the_cpu_managers_state_of_another_policy(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write("/var/lib/kubelet/cpu_manager_state", '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}')
    add(tree, "cpuManagerPolicy: static\nsystemReserved: {cpu: 200m}\n")
    assert causes(tree) == ("manager-state-mismatch",)


@each_single
def test_systemd_resolved_disabled(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    add(tree, f"resolvConf: {RESOLV}\n")
    assert causes(tree) == ()
    tree.journal("kubelet", f'E1214 "Failed to generate sandbox config" err="open {RESOLV}: no such file or directory"')
    assert causes(tree) == ("resolvconf-missing",)


@pytest.mark.parametrize("name", ["made", "single-1.37"])
def test_dockershims_socket_after_124(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.sub(KUBELET, r"containerRuntimeEndpoint: .*", "containerRuntimeEndpoint: unix:///var/run/dockershim.sock")
    assert causes(tree) == ("runtime-endpoint-wrong",)


@pytest.mark.parametrize("name", ["made", "single-1.37"])
def test_a_scheme_put_on_twice(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(
        FLAGS,
        'KUBELET_KUBEADM_ARGS="--hostname-override=cp-1 '
        '--container-runtime-endpoint=unix://unix:///run/containerd/containerd.sock"\n',
    )
    assert causes(tree) == ("runtime-endpoint-wrong",)


def test_clones_of_one_machine(tmp_path: Path) -> None:
    first, second = laid(tmp_path / "one"), laid(tmp_path / "two", Design(name="cp-2", address="192.0.2.112"))
    for tree in (first, second):
        tree.write("/sys/class/dmi/id/product_uuid", "4c4c4544-0042-3510-8058-b4c04f4d3032\n")
    assert [finding.title for finding in compare([first.node(), second.node()])] == [
        "cp-1 and cp-2 have the same product id: 4c4c4544-0042-3510-8058-b4c04f4d3032"
    ]


@each_single
def test_a_hostname_that_changed(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(FLAGS, 'KUBELET_KUBEADM_ARGS=""\n')
    tree.write("/etc/hostname", "m01\n")
    assert causes(tree) == ("node-name-mismatch",)


@each_single
def test_node_not_found_alone_is_no_cause(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.journal("kubelet", 'E1214 kubelet_node_status.go:1] "Error getting node" err="node \\"m01\\" not found"')
    assert causes(tree) == ()


@each_single
def test_static_pods_evicted_for_disk_space(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.sub(APISERVER, r" *priorityClassName: .*\n", "")
    tree.sub(APISERVER, r" *priority: .*\n", "")
    tree.journal("kubelet", "W1214 eviction manager: must evict pod(s) to reclaim ephemeral-storage")
    assert causes(tree) == ("disk-full",)
    assert warned(tree, "priority-missing")


# ---- H


@each_single
def test_cipher_suites_without_the_one_of_http2(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    suites = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
    tree.set_flag("etcd", "cipher-suites", suites)
    assert causes(tree) == ("tls-option-invalid",)
    tree.set_flag("etcd", "cipher-suites", None)
    tree.set_flag("kube-apiserver", "tls-cipher-suites", suites)
    assert causes(tree) == ("tls-option-invalid",)
    tree.set_flag("kube-apiserver", "tls-min-version", "VersionTLS13")
    assert causes(tree) == ()


def test_etcd_of_tls_13_alone_with_an_old_api_server(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(kubernetes="v1.27.4", etcd="3.5.21-0"))
    tree.set_flag("etcd", "tls-min-version", "TLS1.3")
    assert causes(tree) == ("tls-option-invalid",)


# ---- E, I: security modules


@each_single
@pytest.mark.parametrize("mode", ["etc", "kernel"])
def test_selinux_denies_etcd(name: str, mode: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    if mode == "etc":
        tree.write("/etc/selinux/config", "# comment\nSELINUX=enforcing\nSELINUXTYPE=targeted\n")
    else:
        tree.write("/sys/fs/selinux/enforce", "1")
    assert causes(tree) == ()
    line = 'type=AVC msg=audit(1765753200.1:2): avc:  denied  { write } for  pid=5 comm="etcd" name="wal" dev="vda1"'
    tree.write("/var/log/audit/audit.log", f"{line} tcontext=system_u:object_r:var_lib_t:s0 tclass=dir permissive=0\n")
    assert causes(tree) == ("selinux-avc",)


# ---- K


@each_single
def test_protected_kernel_defaults(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    add(tree, "protectKernelDefaults: true\n")
    tree.write("/proc/sys/vm/overcommit_memory", "0\n")
    assert causes(tree) == ("sysctl-protect-kernel",)


@each_single
def test_forwarding_turned_off_by_hardening(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write("/proc/sys/net/ipv4/ip_forward", "0\n")
    tree.write("/etc/sysctl.d/99-hardening.conf", "net.ipv4.ip_forward = 0\n")
    assert causes(tree) == ("sysctl-forward-bridge",)


@each_single
def test_firewalld_after_a_reboot(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write("/etc/systemd/system/multi-user.target.wants/firewalld.service", "[Unit]\n")
    tree.write("/etc/firewalld/zones/public.xml", '<zone><service name="ssh"/></zone>')
    assert causes(tree) == ()
    tree.log(
        "etcd", '{"level":"warn","msg":"prober found high clock drift","error":"dial tcp 192.0.2.9:2380: i/o timeout"}'
    )
    assert causes(tree) == ("firewall-blocks",)


# ---- M, N


@each_single
def test_an_unattended_upgrade_is_timing_only(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(
        "/var/log/apt/history.log",
        "Start-Date: 2026-12-14  06:12:03\nCommandline: /usr/bin/unattended-upgrade\n"
        "Upgrade: containerd:amd64 (1, 2)\n",
    )
    assert causes(tree) == ()


@each_single
def test_the_memory_controller_is_off(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    if tree.place("/sys/fs/cgroup/cgroup.controllers").exists():
        tree.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids\n")
    else:
        head = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
        tree.write("/proc/cgroups", head + "cpuset\t1\t1\t1\ncpu\t2\t1\t1\nmemory\t0\t1\t0\npids\t3\t1\t1\n")
    tree.write("/proc/cmdline", "console=serial0,115200 root=PARTUUID=1\n")
    assert causes(tree) == ("cgroup-controller-missing",)


@each_single
def test_config_points_to_a_kubeconfig(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    drop_in = "/etc/systemd/system/kubelet.service.d/99-own.conf"
    tree.write("/etc/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/bin/kubelet\n")
    command = "/usr/bin/kubelet --hostname-override={} --config=/etc/kubernetes/kubelet.conf"
    tree.write(drop_in, f"[Service]\nExecStart=\nExecStart={command.format(tree.design.name)}\n")
    assert causes(tree) == ("kubelet-config-invalid",)


@each_single
def test_settings_lost_by_an_upgrade(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    backup = "/etc/kubernetes/tmp/kubeadm-kubelet-config1544870591/config.yaml"
    tree.write(backup, tree.read(KUBELET) + f"resolvConf: {RESOLV}\nmaxPods: 220\n")
    assert causes(tree) == ("kubelet-config-missing",)


@each_single
@pytest.mark.parametrize("text", ["cgroupRoot: /\ncgroupRoot: /\n", "volumeStatsAggregationPeriod: 1m\n"])
def test_a_field_of_another_version_or_given_twice(name: str, text: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    add(tree, text)
    assert causes(tree) == ("kubelet-config-invalid",)


@each_single
def test_a_configuration_without_kind(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.sub(KUBELET, r"kind: KubeletConfiguration\n", "")
    assert causes(tree) == ("kubelet-config-invalid",)


@each_single
def test_an_image_of_another_registry_that_cannot_be_pulled(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.sub(ETCD, r"image: \S+/etcd:", "image: registry.example.org/old/etcd:")
    image = next(line.split()[-1] for line in tree.read(ETCD).splitlines() if "image: " in line)
    tree.journal(
        "kubelet", f'E1214 "Failed to pull image" err="failed to pull and unpack {image}: not found" image="{image}"'
    )
    assert causes(tree) == ("image-not-pullable",)


# ---- a cause among decoys, and healthy look-alikes


@each_single
def test_a_disk_that_was_full_explains_what_it_cut(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write("/etc/kubernetes/pki/apiserver-kubelet-client.crt", b"")
    tree.journal("kubelet", 'E1214 "Rotating certs failed" err="write /var/lib/kubelet/pki/x: no space left on device"')
    assert causes(tree) == ("disk-full",)
    assert set(faults(tree)) <= {"disk-full", "pem-empty-or-garbage", "key-pair-mismatch", "issuer-mismatch"}


@each_single
def test_swap_and_a_removed_flag_are_two_causes_in_the_order_to_repair(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    text = tree.read(KUBELET).replace("failSwapOn: false\n", "")
    tree.write(KUBELET, text)
    tree.write("/proc/swaps", "Filename Type Size Used Priority\n/swap.img file 2097148 0 -2\n")
    tree.set_flag("kube-apiserver", "insecure-port", "0")
    assert causes(tree) == ("swap-active", "flag-unknown-or-removed")


@each_single
def test_healthy_look_alikes(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write("/etc/kubernetes/tmp/kubeadm-backup-manifests-2026-11-29-01/kube-apiserver.yaml", tree.read(APISERVER))
    tree.write("/etc/kubernetes/manifests-backup/etcd.yaml", tree.read(ETCD))
    tree.write(f"{MANIFESTS}/.kube-apiserver.yaml.swp", tree.read(APISERVER))
    tree.write("/etc/crio/crio.conf", '[crio.runtime]\ncgroup_manager = "systemd"\n')
    tree.write("/usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n")
    tree.write("/etc/fstab", "UUID=1 / ext4 defaults 0 1\n#/swap.img none swap sw 0 0\n")
    tree.set_flag("etcd", "quota-backend-bytes", "8589934592")
    tree.set_flag("etcd", "auto-compaction-retention", "8h")
    assert causes(tree) == ()


@pytest.mark.parametrize("kubelet", ["v1.36.3", "v1.35.1", "v1.34.4"])
def test_an_older_kubelet_during_a_rolling_upgrade(kubelet: str, tmp_path: Path) -> None:
    tree = laid(tmp_path)
    versions(tree, kubelet=kubelet)
    assert causes(tree) == ()
