"""The kubelet, its settings, the kernel."""

from __future__ import annotations

import re

from tests.incidents.trials.changes import (
    CFG,
    ENV,
    EVERY,
    PORTS,
    firewalld,
    setting,
)
from tests.incidents.trials.stored import (
    line,
)
from tests.incidents.trials.trial import MANIFESTS, Copy, Trials

TRIALS = Trials()
on = TRIALS.on


@on("kubelet-config-yaml-missing", EVERY + " lab-live-1.37", "kubelet-config-missing")
def gone(t: Copy) -> None:
    t.remove(CFG)


@on("kubelet-config-yaml-missing", "single-1.37", "kubelet-config-missing")
def gone_log(t: Copy) -> None:
    t.remove(CFG)
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to load kubelet config file, path: /var/lib/kubelet/config.yaml, error: failed to load Kubelet config file /var/lib/kubelet/config.yaml, error failed to read kubelet config file \\"/var/lib/kubelet/config.yaml\\", error: open /var/lib/kubelet/config.yaml: no such file or directory"',
    )


@on("kubelet-cgroup-v2-too-new-for-old-kubelet", "single-1.34 single-1.36", "cgroup-v1-vs-kubelet")
def old(t: Copy) -> None:
    for m in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        t.sub(f"{MANIFESTS}/{m}.yaml", r"(image: \S+:)v1.\d+.\d+", r"\1v1.18.20")
    t.write("/drtool/versions.json", '{"kubelet": "v1.18.20", "containerd": "1.4.4", "crio": null}')
    t.unit(
        "kubelet",
        "F1214 22:50:00.000000     812 kubelet.go:1384] Failed to start ContainerManager system validation failed - Following Cgroup subsystem not mounted: [cpu cpuacct cpuset memory]",
    )


@on(
    "kubelet-cgroup-v2-too-new-for-old-kubelet",
    "single-1.34",
    "cgroup-v1-vs-kubelet",
    "version-skew,cgroup-v1-vs-kubelet",
    "cgroup-v1-vs-kubelet,version-skew",
)
def old_kubelet_only(t: Copy) -> None:
    t.write("/drtool/versions.json", '{"kubelet": "v1.18.20", "containerd": "1.4.4", "crio": null}')
    t.unit(
        "kubelet",
        "F1214 22:50:00.000000     812 kubelet.go:1384] Failed to start ContainerManager system validation failed - Following Cgroup subsystem not mounted: [cpu cpuacct cpuset memory]",
    )


@on("cgroup v1 on a kubelet that refuses it", "single-1.37 ha-vip-cp1-1.37", "cgroup-v1-vs-kubelet")
def v1(t: Copy) -> None:
    t.remove("/sys/fs/cgroup/cgroup.controllers")
    for c in ("cpu", "memory", "pids", "cpuset"):
        t.place(f"/sys/fs/cgroup/{c}").mkdir()
    t.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    t.write(
        "/proc/mounts",
        "cgroup /sys/fs/cgroup/memory cgroup rw,nosuid,nodev,noexec,relatime,memory 0 0\ncgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n",
    )
    t.write(
        "/proc/cgroups",
        "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t2\t1\t1\ncpu\t3\t1\t1\ncpuacct\t3\t1\t1\nmemory\t5\t1\t1\npids\t6\t1\t1\n",
    )
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to run Kubelet: kubelet is configured to not run on a host using cgroup v1. cgroup v1 support is in maintenance mode"',
    )


@on(
    "kubelet-cpu-manager-state-mismatch",
    "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36 lab-live-1.37",
    "manager-state-mismatch",
)
def policy(t: Copy) -> None:
    setting(t, "cpuManagerPolicy", "static")
    setting(t, "kubeReserved", "{cpu: 500m}")
    t.write("/var/lib/kubelet/cpu_manager_state", '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}')


@on("kubelet-cpu-manager-state-mismatch", "single-1.34 ha-dns-cp1-1.36", "manager-state-mismatch")
def state_static(t: Copy) -> None:
    t.write("/var/lib/kubelet/cpu_manager_state", '{"policyName":"static","defaultCpuSet":"0-3","checksum":14413152}')
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 container_manager_linux.go:1] "Failed to start ContainerManager" err="start cpu manager error: could not restore state from checkpoint: configured policy \\"none\\" differs from state checkpoint policy \\"static\\", please drain this node and delete the CPU manager checkpoint file \\"/var/lib/kubelet/cpu_manager_state\\" before restarting Kubelet"',
    )


@on("kubelet-cpu-manager-state-mismatch", "single-1.36", "manager-state-mismatch")
def cpuset(t: Copy) -> None:
    setting(t, "cpuManagerPolicy", "static")
    setting(t, "kubeReserved", "{cpu: 500m}")
    t.write("/var/lib/kubelet/cpu_manager_state", '{"policyName":"static","defaultCpuSet":"0-7","checksum":14413152}')


@on("kubelet-cpu-manager-state-mismatch", "single-1.36 lab-live-1.37", "manager-state-mismatch")
def memory(t: Copy) -> None:
    t.write(
        "/var/lib/kubelet/memory_manager_state", '{"policyName":"Static","machineState":{},"entries":{},"checksum":1}'
    )


@on("kubelet-resolv-conf-missing", "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36", "resolvconf-missing")
def log(t: Copy) -> None:
    setting(t, "resolvConf", "/run/systemd/resolve/resolv.conf")
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 kuberuntime_sandbox.go:44] "Failed to generate sandbox config for pod" err="open /run/systemd/resolve/resolv.conf: no such file or directory" pod="kube-system/etcd-cp-1"',
    )


@on("kubelet-resolv-conf-missing", "single-1.34 ha-dns-cp1-1.36", "resolvconf-missing")
def dangling(t: Copy) -> None:
    t.place("/etc/resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf")
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 kuberuntime_sandbox.go:44] "Failed to generate sandbox config for pod" err="open /etc/resolv.conf: no such file or directory" pod="kube-system/etcd-cp-1"',
    )


@on("kubelet-resolv-conf-missing trap", "single-1.34 single-1.37", "")
def no_log(t: Copy) -> None:
    setting(t, "resolvConf", "/run/systemd/resolve/resolv.conf")


@on("duplicate-hostname-or-machine-id", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "machine-identity-duplicate")
def machine_id(a: Copy, b: Copy) -> None:
    for t in (a, b):
        t.write("/etc/machine-id", "5d2f3c1e9a5b4a0f8c7e6d5c4b3a2918\n")
        t.write("/sys/class/dmi/id/product_uuid", "4c4c4544-0042-3010-8051-b4c04f4d3233\n")


@on("duplicate-hostname-or-machine-id", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "machine-identity-duplicate")
def uuid_only(a: Copy, b: Copy) -> None:
    for i, t in enumerate((a, b)):
        t.write("/etc/machine-id", f"5d2f3c1e9a5b4a0f8c7e6d5c4b3a291{i}\n")
        t.write("/sys/class/dmi/id/product_uuid", "4c4c4544-0042-3010-8051-b4c04f4d3233\n")


@on("duplicate-hostname-or-machine-id", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "machine-identity-duplicate")
def hostname(a: Copy, b: Copy) -> None:
    for t in (a, b):
        t.write("/etc/machine-id", "5d2f3c1e9a5b4a0f8c7e6d5c4b3a2918\n")
    b.write("/etc/hostname", "cp-1\n")


@on("node-name-not-hostname", "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36 single-1.34", "node-name-mismatch")
def hostname_and_override(t: Copy) -> None:
    t.write("/etc/hostname", "m01\n")
    t.write("/proc/sys/kernel/hostname", "m01\n")
    t.sub(ENV, r" ?--hostname-override=\S+?(?=[\" ])", "")


@on("node-name-not-hostname", "single-1.36 lab-live-1.37", "node-name-mismatch")
def override_changed(t: Copy) -> None:
    s = t.read(ENV)
    t.write(
        ENV,
        re.sub(r"--hostname-override=[\w.-]+", "--hostname-override=m01", s)
        if "hostname-override" in s
        else s.rstrip().rstrip('"') + ' --hostname-override=m01"\n',
    )


@on("node-name-not-hostname", "single-1.34 ha-dns-cp1-1.36", "node-name-mismatch")
def with_log2(t: Copy) -> None:
    hostname_and_override(t)
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 kubelet_node_status.go:99] "Unable to register node with API server" err="nodes \\"m01\\" is forbidden: node \\"cp-1\\" is not allowed to modify node \\"m01\\"" node="m01"',
        'E1214 22:50:00.000000     812 kubelet.go:2424] "Error getting node" err="node \\"m01\\" not found"',
    )


@on("node-name-not-hostname trap", "single-1.37", "")
def upper(t: Copy) -> None:
    t.write("/etc/hostname", "CP-1\n")


@on("node-name-not-hostname trap", "single-1.37", "")
def not_found_only(t: Copy) -> None:
    t.unit(
        "kubelet", 'E1214 22:50:00.000000     812 kubelet.go:2424] "Error getting node" err="node \\"cp-1\\" not found"'
    )


@on("protect-kernel-defaults-sysctl", "single-1.37 external-etcd-1.36 lab-live-1.37", "sysctl-protect-kernel")
def values(t: Copy) -> None:
    setting(t, "protectKernelDefaults", "true")
    for k, v in {
        "vm/overcommit_memory": 0,
        "kernel/panic": 0,
        "kernel/panic_on_oops": 1,
        "vm/panic_on_oom": 0,
        "kernel/keys/root_maxkeys": 1000000,
        "kernel/keys/root_maxbytes": 25000000,
    }.items():
        t.write("/proc/sys/" + k, f"{v}\n")


@on("protect-kernel-defaults-sysctl", "single-1.34 ha-vip-cp1-1.37", "sysctl-protect-kernel")
def one_value(t: Copy) -> None:
    setting(t, "protectKernelDefaults", "true")
    t.write("/proc/sys/vm/overcommit_memory", "0\n")
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 kubelet.go:1511] "Failed to start ContainerManager" err="[invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0, invalid kernel flag: kernel/panic, expected value: 10, actual value: 0]"',
    )


@on("protect-kernel-defaults-sysctl trap", "single-1.34", "")
def without(t: Copy) -> None:
    t.write("/proc/sys/vm/overcommit_memory", "0\n")
    t.write("/proc/sys/kernel/panic", "0\n")


@on("ip-forward-off", "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36 single-1.34", "sysctl-forward-bridge")
def zero(t: Copy) -> None:
    t.write("/proc/sys/net/ipv4/ip_forward", "0\n")


@on("ip-forward-off", "single-1.36 ha-dns-cp1-1.36 dualstack-1.37", "sysctl-forward-bridge")
def hardening(t: Copy) -> None:
    t.write("/proc/sys/net/ipv4/ip_forward", "0\n")
    t.write("/etc/sysctl.d/k8s.conf", "net.ipv4.ip_forward = 1\n")
    t.write("/etc/sysctl.d/99-hardening.conf", "net.ipv4.ip_forward = 0\n")


@on("ip-forward-off", "lab-live-1.37", "sysctl-forward-bridge")
def lab(t: Copy) -> None:
    t.write("/proc/sys/net/ipv4/ip_forward", "0\n")


@on("firewalld-blocks-or-flushes", "ha-vip-cp1-1.37 ha-vip-cp2-1.37 ha-dns-cp1-1.36", "firewall-blocks")
def with_etcd_log(t: Copy) -> None:
    firewalld(t)
    t.says(
        "etcd",
        line(
            "warn",
            "prober detected unhealthy status",
            caller="rafthttp/probing_status.go:68",
            **{
                "round-tripper-name": "ROUND_TRIPPER_RAFT_MESSAGE",
                "remote-peer-id": "8211f1d0f64f3269",
                "rtt": "0s",
                "error": "dial tcp 192.0.2.113:2380: i/o timeout",
            },
        ),
    )


@on("firewalld-blocks-or-flushes", "ha-vip-cp2-1.37", "firewall-blocks")
def no_route(t: Copy) -> None:
    firewalld(t)
    t.says(
        "etcd",
        line(
            "warn",
            "prober detected unhealthy status",
            caller="rafthttp/probing_status.go:68",
            **{
                "remote-peer-id": "8211f1d0f64f3269",
                "rtt": "0s",
                "error": "dial tcp 192.0.2.111:2380: connect: no route to host",
            },
        ),
    )


@on("firewalld-blocks-or-flushes trap", "ha-vip-cp1-1.37 single-1.37", "")
def open_ports(t: Copy) -> None:
    firewalld(t, PORTS)


@on("memory-cgroup-disabled", "single-1.37 external-etcd-1.36 ha-vip-cp1-1.37", "cgroup-controller-missing")
def v2(t: Copy) -> None:
    t.write("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io hugetlb pids rdma misc\n")


@on("memory-cgroup-disabled", "single-1.34 single-1.36", "cgroup-controller-missing")
def v2_log(t: Copy) -> None:
    v2(t)
    t.write("/proc/cmdline", "console=serial0,115200 root=PARTUUID=1-02 rootfstype=ext4 fsck.repair=yes rootwait\n")
    t.write(
        "/proc/cgroups",
        "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t0\t1\t1\ncpu\t0\t1\t1\nmemory\t0\t1\t0\npids\t0\t1\t1\n",
    )
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 kubelet.go:1511] "Failed to start ContainerManager" err="system validation failed - Following Cgroup subsystem not mounted: [memory]"',
    )


@on("memory-cgroup-disabled", "lab-live-1.37", "cgroup-controller-missing")
def v1_mem(t: Copy) -> None:
    t.write(
        "/proc/cgroups",
        "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t2\t1\t1\ncpu\t3\t1\t1\ncpuacct\t3\t1\t1\nmemory\t0\t1\t0\npids\t6\t1\t1\n",
    )


@on("kubelet-config-flag-points-to-kubeconfig", "single-1.37 external-etcd-1.36 single-1.34", "kubelet-config-invalid")
def dropin(t: Copy) -> None:
    t.replace(
        "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf",
        "--config=/var/lib/kubelet/config.yaml",
        "--config=/etc/kubernetes/kubelet.conf",
    )


@on("kubelet-config-flag-points-to-kubeconfig", "ha-vip-cp1-1.37", "kubelet-config-invalid")
def own_dropin(t: Copy) -> None:
    t.write(
        "/etc/systemd/system/kubelet.service.d/20-x.conf",
        '[Service]\nEnvironment="KUBELET_CONFIG_ARGS=--config=/etc/kubernetes/kubelet.conf"\n',
    )
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to load kubelet config file, path: /etc/kubernetes/kubelet.conf, error: failed to load Kubelet config file /etc/kubernetes/kubelet.conf, error failed to decode: no kind \\"Config\\" is registered for version \\"v1\\" in scheme \\"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme/scheme.go:33\\""',
    )


@on("kubelet-config-field-for-other-version", "single-1.37 external-etcd-1.36", "kubelet-config-invalid")
def no_kind(t: Copy) -> None:
    t.sub(CFG, r"(?m)^kind: .*\n", "")
    t.sub(CFG, r"(?m)^apiVersion: .*\n", "")


@on("kubelet-config-field-for-other-version", "single-1.34 ha-vip-cp1-1.37", "kubelet-config-invalid")
def duplicate_key(t: Copy) -> None:
    t.append(CFG, "staticPodPath: /etc/kubernetes/manifests\n")


@on("kubelet-config-field-for-other-version", "single-1.36", "kubelet-config-invalid")
def no_kind_only(t: Copy) -> None:
    t.sub(CFG, r"(?m)^kind: .*\n", "")


@on("kubelet-config-field-for-other-version", "ha-dns-cp1-1.36", "kubelet-config-invalid")
def syntax(t: Copy) -> None:
    t.append(CFG, "featureGates:\n\tNodeSwap: true\n")
