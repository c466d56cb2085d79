"""Healthy look-alikes: nothing at or above error."""

from __future__ import annotations

import json
import os
import re
import shutil

from tests.builders.pki import reissue
from tests.incidents.trials.changes import (
    ALL,
    API,
    CFG,
    ENV,
    ETCD,
    EVERY,
    KCM,
    SCH,
    fs,
    kube_vip,
)
from tests.incidents.trials.stored import (
    DB,
    db,
    ids,
)
from tests.incidents.trials.trial import MANIFESTS, PKI, Copy, Trials

TRIALS = Trials()
on = TRIALS.on


@on("healthy: as it is", EVERY, "")
def _(t: Copy) -> None:
    pass


@on("healthy: etcd-only host", "single-1.37 single-1.34 ha-vip-cp1-1.37", "")
def etcd_only(t: Copy) -> None:
    for m in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        t.remove(f"{MANIFESTS}/{m}.yaml")
    for c in t.place("/etc/kubernetes").glob("*.conf"):
        c.unlink()
    for p in t.place(PKI).glob("*.*"):
        if p.is_file() and not p.name.startswith("apiserver-etcd-client"):
            p.unlink()
    shutil.rmtree(t.place("/var/lib/kubelet/pki"))
    t.remove("/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf")
    t.write(
        "/etc/systemd/system/kubelet.service.d/kubelet.conf",
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nauthentication:\n  anonymous:\n    enabled: false\n  webhook:\n    enabled: false\nauthorization:\n  mode: AlwaysAllow\ncgroupDriver: systemd\naddress: 127.0.0.1\ncontainerRuntimeEndpoint: unix:///var/run/containerd/containerd.sock\nstaticPodPath: /etc/kubernetes/manifests\n",
    )
    t.write(
        "/etc/systemd/system/kubelet.service.d/20-etcd-service-manager.conf",
        "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config=/etc/systemd/system/kubelet.service.d/kubelet.conf\nRestart=always\n",
    )
    for f in (CFG, "/var/lib/kubelet/instance-config.yaml", ENV):
        t.remove(f)


@on("healthy: endpoint is own IP", "single-1.37 single-1.34", "")
def cpe(t: Copy) -> None:
    t.sub(
        "/kubeadm-config.yaml", r"(clusterName: lab\n)", rf'\1controlPlaneEndpoint: "{t.address}:6443"\n'
    ) if "clusterName" in t.read("/kubeadm-config.yaml") else t.append(
        "/kubeadm-config.yaml", f'controlPlaneEndpoint: "{t.address}:6443"\n'
    )


@on("healthy: kube-vip", "ha-vip-cp1-1.37 ha-vip-cp2-1.37 ha-vip-cp1-1.37+ha-vip-cp2-1.37", "")
def kv(*trees: Copy) -> None:
    for t in trees:
        t.write(MANIFESTS + "/kube-vip.yaml", kube_vip())


@on("healthy: etcd metrics and dual listeners", "single-1.37", "")
def listen(t: Copy) -> None:
    t.flag("etcd", "listen-client-urls", "https://0.0.0.0:2379")
    t.flag("etcd", "listen-metrics-urls", "http://127.0.0.1:2381,http://0.0.0.0:2382")


@on("healthy: name only in /etc/hosts", "ha-dns-cp1-1.36", "")
def lb_hosts(t: Copy) -> None:
    t.append("/etc/hosts", "192.0.2.240 k8s.example.org\n")


for distro, paths in {
    "RKE2": (
        "/var/lib/rancher/rke2/server/tls/server-ca.crt",
        "/etc/rancher/rke2/config.yaml",
        "/var/lib/rancher/rke2/agent/pod-manifests/etcd.yaml",
    ),
    "k3s": ("/var/lib/rancher/k3s/server/token", "/etc/rancher/k3s/k3s.yaml"),
    "k0s": ("/var/lib/k0s/pki/ca.crt", "/etc/k0s/k0s.yaml"),
    "microk8s": ("/var/snap/microk8s/current/args/kube-apiserver",),
}.items():

    def made(t, paths=paths):
        for d in ("/etc/kubernetes", "/var/lib/kubelet", "/var/lib/etcd"):
            if t.place(d).exists():
                shutil.rmtree(t.place(d))
        for p in paths:
            t.write(p, "x: y\n")

    made.__name__ = distro
    on("healthy: other distributions", "single-1.37", "")(made)


@on("healthy: many backups", "single-1.37 ha-vip-cp1-1.37", "")
def backups(t: Copy) -> None:
    for i in range(1, 9):
        t.write(
            f"/etc/kubernetes/tmp/kubeadm-backup-etcd-2026-1{i % 3}-0{i}-10-00-00/etcd/member/snap/db", b"\0" * 1000
        )
        t.write(f"/etc/kubernetes/tmp/kubeadm-backup-manifests-2026-1{i % 3}-0{i}-10-00-00/etcd.yaml", t.read(ETCD))
    t.write("/etc/kubernetes/manifests-backup/kube-apiserver.yaml", t.read(API))
    t.write(MANIFESTS + "/.hidden.yaml", t.read(API))
    fs(t)


@on("healthy: big db below quota", "single-1.37 single-1.34", "")
def big(t: Copy) -> None:
    t.own(DB)
    os.truncate(t.place(DB), 2_500_000_000)
    t.flag("etcd", "quota-backend-bytes", "8589934592")
    t.flag("etcd", "auto-compaction-retention", "8h")


@on("healthy: custom data dir", "single-1.37 ha-vip-cp1-1.37", "")
def data_dir(t: Copy) -> None:
    t.place("/data").mkdir()
    t.place("/var/lib/etcd").rename(t.place("/data/etcd"))
    t.flag("etcd", "data-dir", "/data/etcd")
    t.sub(ETCD, r"mountPath: /var/lib/etcd", "mountPath: /data/etcd")
    t.sub(ETCD, r"path: /var/lib/etcd", "path: /data/etcd")
    t.append("/etc/fstab", "UUID=11111111-014b-458b-b5c1-848e92a327a3 /data ext4 defaults 0 2\n")


@on("healthy: old kubelet", "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36", "")
def old(t: Copy) -> None:
    minor = int(re.search(r"v1\.(\d+)", t.read(API))[1])
    t.write("/drtool/versions.json", json.dumps({"kubelet": f"v1.{minor - 3}.4", "containerd": "2.1.4", "crio": None}))


@on("healthy: rolling upgrade", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "")
def rolling(a: Copy, b: Copy) -> None:
    for m in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        a.replace(f"{MANIFESTS}/{m}.yaml", "v1.37.2", "v1.36.1")
    for t in (a, b):
        t.write("/drtool/versions.json", '{"kubelet": "v1.36.1", "containerd": "2.1.4", "crio": null}')


@on("healthy: pair", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "")
def pair(a: Copy, b: Copy) -> None:
    pass


@on("healthy: partial copy", "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36 dualstack-1.37", "")
def no_proc(t: Copy) -> None:
    for d in ("/proc", "/sys", "/usr", "/opt", "/etc/containerd", "/etc/cni"):
        if t.place(d).exists():
            shutil.rmtree(t.place(d))


@on("healthy: partial copy", "single-1.37 single-1.34", "")
def only_kubernetes(t: Copy) -> None:
    for d in ("/proc", "/sys", "/usr", "/opt", "/etc/containerd", "/etc/cni", "/var/lib/etcd", "/var/lib/kubelet"):
        if t.place(d).exists():
            shutil.rmtree(t.place(d))


@on("healthy: no CNI yet", "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36", "")
def no_cni(t: Copy) -> None:
    shutil.rmtree(t.place("/etc/cni/net.d"))
    t.place("/etc/cni/net.d").mkdir()
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 kubelet.go:3011] "Container runtime network not ready" networkReady="NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"',
    )


@on("healthy: worker", "single-1.37", "")
def worker(t: Copy) -> None:
    shutil.rmtree(t.place(MANIFESTS))
    t.place(MANIFESTS).mkdir()
    for c in t.place("/etc/kubernetes").glob("*.conf"):
        if c.name != "kubelet.conf":
            c.unlink()
    for p in list(t.place(PKI).glob("*")):
        if p.is_dir():
            shutil.rmtree(p)
        elif p.name != "ca.crt":
            p.unlink()
    shutil.rmtree(t.place("/var/lib/etcd"))
    t.remove("/kubeadm-config.yaml")


@on("healthy: IPv6 only", "single-1.37", "")
def v6(t: Copy) -> None:
    new = "2001:db8::111"
    t.write(
        "/proc/net/if_inet6",
        "00000000000000000000000000000001 01 80 10 80       lo\n20010db8000000000000000000000111 02 40 00 80     eth0\n",
    )
    t.replace("/proc/net/fib_trie", f"     |-- {t.address}\n        /32 host LOCAL\n", "")
    a = t.address
    s = t.read(ETCD)
    s = (
        s.replace(f"https://{a}", f"https://[{new}]")
        .replace("https://127.0.0.1:2379", "https://[::1]:2379")
        .replace("http://127.0.0.1:2381", "http://[::1]:2381")
        .replace("host: 127.0.0.1", "host: ::1")
    )
    t.write(ETCD, s, 0o600)
    s = t.read(API)
    s = (
        s.replace(f"endpoint: {a}:6443", f"endpoint: '[{new}]:6443'")
        .replace(a, new)
        .replace("https://127.0.0.1:2379", "https://[::1]:2379")
        .replace("10.96.0.0/12", "fd00:10:96::/112")
    )
    t.write(API, s, 0o600)
    s = (
        t.read(KCM)
        .replace("10.96.0.0/12", "fd00:10:96::/112")
        .replace("10.244.0.0/16", "fd00:10:244::/56")
        .replace("127.0.0.1", "::1")
    )
    t.write(KCM, s, 0o600)
    t.replace(SCH, "127.0.0.1", "::1")
    for c in (*ALL, "super-admin.conf"):
        t.replace("/etc/kubernetes/" + c, a, f"[{new}]")
    t.write("/etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n{new} cp-1\n")
    t.sub("/kubeadm-config.yaml", a, new)
    t.sub("/kubeadm-config.yaml", "10.96.0.0/12", "fd00:10:96::/112")
    t.sub("/kubeadm-config.yaml", "10.244.0.0/16", "fd00:10:244::/56")
    t.replace(CFG, "10.96.0.10", "fd00:10:96::a")
    t.replace(CFG, "healthzBindAddress: 127.0.0.1", "healthzBindAddress: ::1")
    reissue(
        t,
        "apiserver",
        names=[
            "cp-1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "fd00:10:96::1",
            new,
        ],
    )
    for p in ("etcd/server", "etcd/peer"):
        reissue(t, p, names=["cp-1", "localhost", "127.0.0.1", "::1", new])
    me = next(iter(ids(t).values()))
    db(
        t,
        members=lambda _: {
            f"{me['id']:x}".encode(): json.dumps(
                {**me, "peerURLs": [f"https://[{new}]:2380"], "clientURLs": [f"https://[{new}]:2379"]}
            ).encode()
        },
    )
    t.write(
        "/etc/cni/net.d/10-lab.conflist",
        t.read("/etc/cni/net.d/10-lab.conflist").replace("10.244.0.0/16", "fd00:10:244::/64"),
    )


@on("healthy: taint removed, extra static pod", "single-1.37", "")
def extra_pod(t: Copy) -> None:
    t.write(
        MANIFESTS + "/nginx.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: default\nspec:\n  containers:\n  - name: web\n    image: nginx:1.27\n",
    )
