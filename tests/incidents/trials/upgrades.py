"""Upgrades, resets and what they leave."""

from __future__ import annotations

import re
import shutil

from tests.incidents.trials.changes import (
    API,
    CFG,
    KCM,
    SCH,
    fs,
    kargs,
)
from tests.incidents.trials.stored import (
    line,
)
from tests.incidents.trials.trial import MANIFESTS, PKI, Copy, Trials

TRIALS = Trials()
on = TRIALS.on


@on("new-kubelet-behind-vip-old-apiserver-1.31", "ha-dns-cp1-1.36", "version-skew", "skew-unsupported")
def versions_json(t: Copy) -> None:
    t.replace(
        "/etc/kubernetes/kubelet.conf", f"https://{t.address}:6443", "https://k8s.example.org:6443"
    ) if t.address in t.read("/etc/kubernetes/kubelet.conf") else None
    t.write("/drtool/versions.json", '{"kubelet": "v1.37.2", "containerd": "2.1.4", "crio": null}')


@on("new-kubelet-behind-vip-old-apiserver-1.31", "ha-dns-cp1-1.36 single-1.36", "version-skew")
def dpkg(t: Copy) -> None:
    t.write(
        "/var/lib/dpkg/status",
        "Package: kubelet\nStatus: install ok installed\nPriority: optional\nSection: admin\nArchitecture: amd64\nVersion: 1.37.2-1.1\nDescription: Kubernetes node agent\n\n",
    )


@on("new-kubelet-behind-vip-old-apiserver-1.31", "ha-dns-cp1-1.36", "version-skew")
def kubelet_log(t: Copy) -> None:
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 server.go:525] "Kubelet version" kubeletVersion="v1.37.2"',
        'E1214 22:50:00.000000     812 kuberuntime_manager.go:1341] "Unhandled Error" err="container &Container{Name:coredns} start failed in pod coredns: CreateContainerConfigError: services have not yet been read at least once, cannot construct envvars"',
    )


@on(
    "new-kubelet-behind-vip-old-apiserver-1.31",
    "ha-vip-cp1-1.37+ha-vip-cp2-1.37",
    "version-skew",
    "skew-unsupported,version-skew",
    "skew-unsupported",
)
def two(a: Copy, b: Copy) -> None:
    for m in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        a.replace(f"{MANIFESTS}/{m}.yaml", "v1.37.2", "v1.36.1")
    b.write("/drtool/versions.json", '{"kubelet": "v1.37.2", "containerd": "2.1.4", "crio": null}')
    a.write("/drtool/versions.json", '{"kubelet": "v1.36.1", "containerd": "2.1.4", "crio": null}')
    b.replace("/etc/kubernetes/kubelet.conf", f"https://{b.address}:6443", "https://192.0.2.100:6443")


@on("new-kubelet-behind-vip-old-apiserver-1.31 wrong fix", "ha-dns-cp1-1.36 single-1.34", "feature-gate-unknown")
def kubeadm_gate(t: Copy) -> None:
    t.flag("kube-apiserver", "feature-gates", "ControlPlaneKubeletLocalMode=true")


@on("upgrade-tmp-backups-fill-disk", "single-1.34 ha-vip-cp1-1.37 external-etcd-1.36", "disk-full")
def backups(t: Copy) -> None:
    for i in range(1, 9):
        t.write(
            f"/etc/kubernetes/tmp/kubeadm-backup-etcd-2026-1{i % 3}-0{i}-10-00-00/etcd/member/snap/db", b"\0" * 10000
        )
    fs(t, free=0)


@on("upgrade-tmp-backups-fill-disk", "single-1.37 ha-dns-cp1-1.36 lab-live-1.37", "disk-full")
def with_eviction(t: Copy) -> None:
    for i in range(1, 9):
        t.write(
            f"/etc/kubernetes/tmp/kubeadm-backup-etcd-2026-1{i % 3}-0{i}-10-00-00/etcd/member/snap/db", b"\0" * 10000
        )
    fs(t, free=400_000_000)
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 eviction_manager.go:369] "Eviction manager: attempting to reclaim" resourceName="ephemeral-storage"',
        'E1214 22:50:00.000000     812 eviction_manager.go:614] "Eviction manager: cannot evict a critical pod" pod="kube-system/etcd-cp-1"',
    )


@on("upgrade-tmp-backups-fill-disk", "single-1.36", "disk-full")
def enospc_log(t: Copy) -> None:
    for i in range(1, 9):
        t.write(
            f"/etc/kubernetes/tmp/kubeadm-backup-etcd-2026-1{i % 3}-0{i}-10-00-00/etcd/member/snap/db", b"\0" * 10000
        )
    t.says(
        "etcd",
        line(
            "panic",
            "failed to save raft HardState and entries",
            error="write /var/lib/etcd/member/wal/0000000000000000-0000000000000000.wal: no space left on device",
        ),
    )


@on(
    "upgrade-interrupted-half-manifests",
    "single-1.37 ha-vip-cp1-1.37",
    "image-inconsistent",
    "upgrade-leftovers",
    "manifest-missing",
    "skew-unsupported",
)
def newer_apiserver(t: Copy) -> None:
    for m in ("kube-controller-manager", "kube-scheduler"):
        t.sub(f"{MANIFESTS}/{m}.yaml", r"v1\.37\.2", "v1.36.1")
    t.write("/etc/kubernetes/tmp/kubeadm-upgraded-manifests1234567/kube-scheduler.yaml", t.read(SCH))
    t.write("/etc/kubernetes/tmp/kubeadm-upgraded-manifests1234567/kube-controller-manager.yaml", t.read(KCM))


@on(
    "upgrade-interrupted-half-manifests",
    "single-1.36 single-1.34",
    "image-inconsistent",
    "upgrade-leftovers",
    "manifest-missing",
    "skew-unsupported",
    "",
)
def older_apiserver(t: Copy) -> None:
    v = re.search(r"v1\.(\d+)\.\d+", t.read(API))
    t.sub(API, r"v1\.\d+\.\d+", f"v1.{int(v[1]) - 1}.3")
    t.write(
        "/etc/kubernetes/tmp/kubeadm-upgraded-manifests1234567/kube-apiserver.yaml",
        t.read(API).replace(f"v1.{int(v[1]) - 1}.3", v[0]),
    )


@on("upgrade-interrupted-half-manifests", "single-1.37 ha-dns-cp1-1.36", "manifest-missing")
def one_gone(t: Copy) -> None:
    for m in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        t.write(f"/etc/kubernetes/tmp/kubeadm-upgraded-manifests1234567/{m}.yaml", t.read(f"{MANIFESTS}/{m}.yaml"))
    t.remove(KCM)


@on("upgrade-interrupted-half-manifests", "single-1.37", "manifest-missing")
def apiserver_gone(t: Copy) -> None:
    t.write("/etc/kubernetes/tmp/kubeadm-backup-manifests-2026-12-14-22-00-00/kube-apiserver.yaml", t.read(API))
    t.remove(API)


@on(
    "kubelet-flag-removed-pod-infra-container-image-1.35",
    "single-1.37 ha-vip-cp1-1.37 single-1.36 external-etcd-1.36",
    "kubelet-flag-removed",
)
def env(t: Copy) -> None:
    kargs(t, "--pod-infra-container-image=registry.k8s.io/pause:3.10")


@on("kubelet-flag-removed-pod-infra-container-image-1.35", "single-1.37 ha-dns-cp1-1.36", "kubelet-flag-removed")
def extra_args(t: Copy) -> None:
    t.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--pod-infra-container-image=registry.k8s.io/pause:3.9\n")
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to parse kubelet flag: unknown flag: --pod-infra-container-image"',
    )


@on("kubelet-flag-removed-pod-infra-container-image-1.35", "single-1.37 lab-live-1.37", "kubelet-flag-removed")
def drop_in(t: Copy) -> None:
    t.write(
        "/etc/systemd/system/kubelet.service.d/20-extra.conf",
        '[Service]\nEnvironment="KUBELET_EXTRA_ARGS=--pod-infra-container-image=registry.k8s.io/pause:3.9"\n',
    )


@on("kubelet-flag-removed-pod-infra-container-image-1.35 trap", "single-1.34", "")
def legal(t: Copy) -> None:
    kargs(t, "--pod-infra-container-image=registry.k8s.io/pause:3.10")


@on(
    "kubelet-flag-removed-pod-infra-container-image-1.35",
    "single-1.34",
    "kubelet-flag-removed",
    "version-skew",
    "kubelet-flag-removed,version-skew",
)
def kubelet_newer(t: Copy) -> None:
    kargs(t, "--pod-infra-container-image=registry.k8s.io/pause:3.10")
    t.write("/drtool/versions.json", '{"kubelet": "v1.35.0", "containerd": "2.1.4", "crio": null}')


@on("static-pods-evicted-disk-pressure", "single-1.37 single-1.34 ha-vip-cp1-1.37", "disk-full")
def evicted(t: Copy) -> None:
    t.unit(
        "kubelet",
        "W1214 22:50:00.000000     812 eviction_manager.go:333] eviction manager: attempting to reclaim ephemeral-storage",
        "I1214 22:50:00.000000     812 eviction_manager.go:347] eviction manager: must evict pod(s) to reclaim ephemeral-storage",
        "I1214 22:50:00.000000     812 eviction_manager.go:574] eviction manager: pod kube-apiserver-cp-1_kube-system(abc) is evicted successfully",
    )
    fs(t, free=2_000_000_000)
    for m in ("kube-apiserver", "etcd"):
        t.sub(f"{MANIFESTS}/{m}.yaml", r"  priority: .*\n  priorityClassName: .*\n", "") if "  priority: " in t.read(
            f"{MANIFESTS}/{m}.yaml"
        ) else t.sub(f"{MANIFESTS}/{m}.yaml", r"  priorityClassName: .*\n", "")


@on("static-pods-evicted-disk-pressure", "external-etcd-1.36 lab-live-1.37", "disk-full")
def evicted_log(t: Copy) -> None:
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 eviction_manager.go:380] "Eviction manager: must evict pod(s) to reclaim" resourceName="ephemeral-storage"',
        'I1214 22:50:01.000000     812 eviction_manager.go:622] "Eviction manager: pod is evicted successfully" pod="kube-system/kube-apiserver-cp-1"',
    )


@on("unattended-upgrade-of-runtime-or-kubelet", "single-1.37 ha-vip-cp1-1.37", "")
def _(t: Copy) -> None:
    t.write(
        "/var/log/apt/history.log",
        "Start-Date: 2026-12-14  06:25:01\nCommandline: /usr/bin/unattended-upgrade\nUpgrade: containerd.io:amd64 (2.1.3-1, 2.1.4-1)\nEnd-Date: 2026-12-14  06:25:40\n",
    )
    t.write("/var/log/dpkg.log", "2026-12-14 06:25:20 status installed containerd.io:amd64 2.1.4-1\n")


@on("kubelet-config-lost-on-upgrade-1.30", "single-1.37 ha-vip-cp1-1.37", "kubelet-config-missing")
def lost(t: Copy) -> None:
    t.write(
        "/etc/kubernetes/tmp/kubeadm-kubelet-config1234567890/config.yaml",
        t.read(CFG) + "resolvConf: /run/systemd/resolve/resolv.conf\nfailSwapOn: false\nmaxPods: 250\n",
    )


@on("kubelet-config-lost-on-upgrade-1.30", "single-1.34 single-1.36", "kubelet-config-missing")
def lost_driver(t: Copy) -> None:
    t.write("/etc/kubernetes/tmp/kubeadm-kubelet-config1234567890/config.yaml", t.read(CFG) + "failSwapOn: false\n")
    t.sub(CFG, r"cgroupDriver: .*\n", "")
    t.write(
        "/proc/swaps",
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2                               partition\t2097148\t\t0\t\t-2\n",
    )


@on("kubeadm-reset-removed-pki-etcd-left", "single-1.37 ha-vip-cp1-1.37 lab-live-1.37", "never-initialised-or-reset")
def reset(t: Copy) -> None:
    shutil.rmtree(t.place(MANIFESTS))
    t.place(MANIFESTS).mkdir()
    shutil.rmtree(t.place(PKI))
    t.place(PKI).mkdir()
    t.remove(CFG)
    for c in t.place("/etc/kubernetes").glob("*.conf"):
        c.unlink()


@on("kubeadm-reset-removed-pki-etcd-left", "single-1.34 external-etcd-1.36 single-1.36", "never-initialised-or-reset")
def interrupted(t: Copy) -> None:
    shutil.rmtree(t.place(MANIFESTS))
    t.place(MANIFESTS).mkdir()
    shutil.rmtree(t.place(PKI))
    t.place(PKI).mkdir()
    t.remove(CFG)
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to load kubelet config file, path: /var/lib/kubelet/config.yaml, error: open /var/lib/kubelet/config.yaml: no such file or directory"',
    )


@on("kubeadm-reset-removed-pki-etcd-left", "ha-dns-cp1-1.36", "never-initialised-or-reset")
def all_removed(t: Copy) -> None:
    shutil.rmtree(t.place("/etc/kubernetes"))
    t.place(MANIFESTS).mkdir(parents=True)
    t.place(PKI).mkdir()
    shutil.rmtree(t.place("/var/lib/kubelet"))
    t.append("/root/.bash_history", "kubeadm reset -f\n")
