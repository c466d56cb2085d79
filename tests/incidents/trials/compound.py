"""A cause among decoys; two faults at once."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime

from tests.builders import member as mem
from tests.builders.pki import CURRENT, edit_kubeconfig, reissue, rotate_kubelet
from tests.incidents.trials.changes import (
    API,
    CFG,
    ETCD,
    LOUD,
    SCH,
    TOML,
    expired,
    fs,
    kargs,
    proxy,
    readdress,
    renewed_past,
)
from tests.incidents.trials.stored import (
    alarm,
    db,
    ids,
    line,
    wal,
)
from tests.incidents.trials.trial import MANIFESTS, PKI, Copy, Trials

TRIALS = Trials()
on = TRIALS.on


@on(
    "decoy: address, stale admin copy, no CNI",
    "single-1.37 ha-vip-cp1-1.37 single-1.34 dualstack-1.37",
    "node-address-changed",
)
def ip_decoys(t: Copy) -> None:
    readdress(t)
    t.write("/root/.kube/config", t.read("/etc/kubernetes/admin.conf"), 0o600)
    edit_kubeconfig(t, "/root/.kube/config", issued=expired(t, "admin.conf"))
    shutil.rmtree(t.place("/etc/cni/net.d"))
    t.place("/etc/cni/net.d").mkdir()
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 kubelet.go:3011] "Container runtime network not ready" networkReady="NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"',
    )


@on("decoy: address, stale admin copy, no CNI", "single-1.36 external-etcd-1.36", "node-address-changed")
def cni_dir_gone(t: Copy) -> None:
    readdress(t)
    edit_kubeconfig(t, "/etc/kubernetes/admin.conf", issued=expired(t, "admin.conf"))
    shutil.rmtree(t.place("/etc/cni"))


@on("decoy: disk was full, free again", "single-1.37 ha-vip-cp1-1.37 single-1.34", "disk-full")
def was_full(t: Copy) -> None:
    t.own(mem.WAL + "/" + max(p.name for p in t.place(mem.WAL).glob("*.wal")))
    p = t.place(mem.WAL) / max(p.name for p in t.place(mem.WAL).glob("*.wal"))
    recs = list(mem.records(p))
    a, b = recs[-2]
    os.truncate(p, a + 12)
    t.write("/var/lib/kubelet/pki/kubelet-client-2026-12-14-20-00-00.pem", "", 0o600)
    t.place(CURRENT).unlink()
    t.place(CURRENT).symlink_to("/var/lib/kubelet/pki/kubelet-client-2026-12-14-20-00-00.pem")
    fs(t)
    t.says(
        "etcd",
        line(
            "fatal",
            "failed to save WAL",
            error="write /var/lib/etcd/member/wal/0000000000000000-0000000000000000.wal: no space left on device",
        ),
    )
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 certificate_manager.go:1] "Unhandled Error" err="kubernetes.io/kube-apiserver-client-kubelet: Failed to write the certificate: write /var/lib/kubelet/pki/kubelet-client-2026-12-14-20-00-00.pem: no space left on device"',
    )


@on("decoy: disk was full, free again", "single-1.36 ha-dns-cp1-1.36", "disk-full")
def was_full_kubelet_log(t: Copy) -> None:
    p = t.own(mem.WAL + "/" + max(p.name for p in t.place(mem.WAL).glob("*.wal")))
    recs = list(mem.records(p))
    a, b = recs[len(recs) // 2]
    os.truncate(p, a + 12)
    t.write("/var/lib/kubelet/pki/kubelet-client-2026-11-30-03-30-00.pem", "", 0o600)
    t.unit(
        "kubelet",
        'E1214 20:00:00.000000     812 kubelet.go:1] "Failed to create sandbox" err="mkdir /var/lib/kubelet/pods/x: no space left on device"',
    )


@on("decoy: kubelet client expired, others renewed", "single-1.37 single-1.34", "cert-expired")
def green_table(t: Copy) -> None:
    when = datetime(2026, 12, 14, tzinfo=UTC)
    for p in (
        "etcd/server",
        "etcd/peer",
        "etcd/healthcheck-client",
        "apiserver-etcd-client",
        "apiserver-kubelet-client",
        "front-proxy-client",
    ):
        if t.place(f"{PKI}/{p}.crt").exists():
            reissue(t, p, now=when)
    rotate_kubelet(t, expired(t, "kubelet.conf"))
    t.unit(
        "kubelet",
        "E1214 22:50:00.000000     812 bootstrap.go:266] part of the existing bootstrap client certificate in /etc/kubernetes/kubelet.conf is expired: 2026-12-09 05:00:00 +0000 UTC",
        'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to run Kubelet: unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory"',
    )


@on("decoy: loud symptom", "single-1.37 ha-vip-cp1-1.37", "etcd-wal-corrupt")
def wal_and_symptoms(t: Copy) -> None:
    p = wal(t)
    recs = list(mem.records(p))
    a, b = recs[len(recs) // 2]
    d = p.read_bytes()[a + 20 : a + 24]
    mem.overwrite(p, a + 20, bytes(x ^ 0xFF for x in d))
    t.says("kube-apiserver", *LOUD)
    t.says("kube-controller-manager", 'E1214 22:50:00.000000       1 controllermanager.go:413] "leaderelection lost"')
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 kubelet_node_status.go:99] "Unable to register node with API server" err="Post \\"https://192.0.2.111:6443/api/v1/nodes\\": dial tcp 192.0.2.111:6443: connect: connection refused" node="cp-1"',
        'E1214 22:50:00.000000     812 pod_workers.go:1301] "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"etcd\\" with CrashLoopBackOff: \\"back-off 5m0s restarting failed container=etcd pod=etcd-cp-1_kube-system(x)\\"" pod="kube-system/etcd-cp-1"',
    )


@on("decoy: loud symptom", "single-1.34", "flag-unknown-or-removed")
def etcd_flag(t: Copy) -> None:
    t.flag("kube-apiserver", "insecure-port", "0")
    t.says("kube-apiserver", *LOUD, "Error: unknown flag: --insecure-port")


@on("decoy: loud symptom", "single-1.37", "key-pair-mismatch")
def pair_and_symptoms(t: Copy) -> None:
    t.write(PKI + "/etcd/server.key", t.read(PKI + "/etcd/peer.key"), 0o600)
    t.says("kube-apiserver", *LOUD)
    t.says(
        "etcd",
        line(
            "fatal",
            "discovery failed",
            caller="etcdmain/etcd.go:204",
            error="tls: private key does not match public key",
        ),
    )


@on("decoy: manifest backup outside, expired old rotated pem", "single-1.37", "swap-active")
def swap(t: Copy) -> None:
    t.write(
        "/proc/swaps",
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2                               partition\t2097148\t\t0\t\t-2\n",
    )
    i = expired(t, "kubelet.conf")
    t.write("/var/lib/kubelet/pki/kubelet-client-2025-11-30-03-30-00.pem", i.certificate_pem + i.key_pem, 0o600)
    t.write("/etc/kubernetes/backup/kube-apiserver.yaml.bak", t.read(API))
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on flag to false"',
    )
    t.says("kube-apiserver", *LOUD)


@on("two faults", "single-1.37 ha-vip-cp1-1.37", "swap-active,flag-unknown-or-removed")
def swap_and_flag(t: Copy) -> None:
    t.write(
        "/proc/swaps",
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2                               partition\t2097148\t\t0\t\t-2\n",
    )
    t.flag("kube-scheduler", "port", "0")


@on("two faults", "single-1.34 ha-dns-cp1-1.36", "cert-expired,flag-unknown-or-removed")
def kubelet_cert_and_flag(t: Copy) -> None:
    rotate_kubelet(t, expired(t, "kubelet.conf"))
    t.flag("kube-apiserver", "insecure-port", "0")


@on("two faults", "single-1.37", "cgroup-driver-mismatch,etcd-nospace")
def cgroup_and_nospace(t: Copy) -> None:
    t.replace(TOML, "SystemdCgroup = true", "SystemdCgroup = false")
    me = next(iter(ids(t).values()))["id"]
    db(t, alarm=alarm(1, me))


@on("two faults", "single-1.36", "kubelet-config-missing,key-pair-mismatch")
def config_and_pair(t: Copy) -> None:
    t.remove(CFG)
    t.write(PKI + "/apiserver.key", t.read(PKI + "/etcd/peer.key"), 0o600)


@on("two faults", "single-1.37", "node-address-changed,flag-unknown-or-removed")
def ip_and_flag(t: Copy) -> None:
    readdress(t)
    t.flag("kube-scheduler", "port", "0")


@on("two faults", "ha-vip-cp1-1.37", "etcd-wal-corrupt,probe-unauthorized")
def wal_and_anonymous(t: Copy) -> None:
    p = wal(t)
    recs = list(mem.records(p))
    a, b = recs[len(recs) // 2]
    d = p.read_bytes()[a + 20 : a + 24]
    mem.overwrite(p, a + 20, bytes(x ^ 0xFF for x in d))
    t.flag("kube-apiserver", "anonymous-auth", "false")


@on("two faults", "single-1.37", "containerd-cri-disabled,kubelet-flag-removed")
def runtime_and_kubelet(t: Copy) -> None:
    t.replace(TOML, "version = 2\n", 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
    kargs(t, "--pod-infra-container-image=x")


@on("two faults", "single-1.34", "duplicate-static-pod,kubeconfig-server-unknown-address")
def dup_and_conf(t: Copy) -> None:
    t.write(MANIFESTS + "/etcd.yaml.bak", t.read(ETCD))
    t.sub("/etc/kubernetes/scheduler.conf", r"server: \S+", "server: https://192.0.2.77:6443")


@on("two faults", "single-1.37", "duplicate-static-pod,cert-expired")
def expired_and_dup(t: Copy) -> None:
    renewed_past(t, "apiserver-etcd-client")
    t.write(MANIFESTS + "/kube-scheduler.yaml.old", t.read(SCH))


@on("two faults", "external-etcd-1.36", "disk-full,cert-expired", "cert-expired,disk-full")
def disk_and_cert(t: Copy) -> None:
    fs(t, free=0)
    renewed_past(t, "apiserver")


@on("two faults", "single-1.36", "kubelet-client-link,etcd-version-downgrade")
def link_and_downgrade(t: Copy) -> None:
    t.place(CURRENT).unlink()
    t.place(CURRENT).symlink_to("/nowhere.pem")
    t.sub(ETCD, r"image: \S+", "image: registry.k8s.io/etcd:3.5.21-0")


@on("two faults", "single-1.37", "etcd-servers-vs-etcd,no-proxy-incomplete")
def servers_and_proxy(t: Copy) -> None:
    t.flag("kube-apiserver", "etcd-servers", "https://127.0.0.1:4001")
    proxy(t)


@on("two faults", "single-1.37", "issuer-mismatch,cgroup-driver-mismatch", "cgroup-driver-mismatch,issuer-mismatch")
def ca_and_cgroup(t: Copy) -> None:
    t.write(f"{PKI}/etcd/ca.crt", t.read(f"{PKI}/ca.crt"))
    t.replace(TOML, "SystemdCgroup = true", "SystemdCgroup = false")


@on("two faults", "single-1.37", "sysctl-forward-bridge,tls-option-invalid")
def sysctl_and_tls(t: Copy) -> None:
    t.write("/proc/sys/net/ipv4/ip_forward", "0\n")
    t.flag("kube-apiserver", "tls-min-version", "VersionTLS14")


@on("two faults", "ha-vip-cp1-1.37", "kubelet-flag-removed,vip-prefix-source-address")
def flag_and_vip(t: Copy) -> None:
    kargs(t, "--network-plugin=cni")
    t.write(
        "/etc/keepalived/keepalived.conf",
        "vrrp_instance VI_1 {\n  interface eth0\n  virtual_ipaddress {\n    192.0.2.100/24\n  }\n}\n",
    )
    t.says(
        "etcd",
        line(
            "warn",
            "rejected connection on peer endpoint",
            **{
                "remote-addr": "192.0.2.100:65036",
                "server-name": "",
                "error": 'tls: "192.0.2.100" does not match any of DNSNames ["cp-1" "localhost"]',
            },
        ),
    )
