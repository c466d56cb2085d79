"""Changes to a node's files that several trials make."""

from __future__ import annotations

import base64
import json
import os
import re
from datetime import UTC, datetime, timedelta

from manifests.pki.issuing import Issued
from tests.builders.pki import client, edit_kubeconfig, reissue
from tests.incidents.trials.trial import MANIFESTS, PKI, Copy

STACKED = "single-1.37 ha-vip-cp1-1.37 ha-dns-cp1-1.36"


ALL = ("admin.conf", "controller-manager.conf", "kubelet.conf", "scheduler.conf")


def expired(t: Copy, name: str) -> Issued:
    return client(t, name, datetime(2026, 11, 30, 5, tzinfo=UTC), timedelta(days=9))


def readdress(t: Copy, new: str = "192.0.2.120") -> str:
    """The host has another address; no file of Kubernetes knows."""
    t.replace("/proc/net/fib_trie", t.address, new)
    return new


def kube_vip(
    cidr: str = "32", conf: str = "/etc/kubernetes/admin.conf", image: str = "ghcr.io/kube-vip/kube-vip:v0.8.9"
) -> str:
    """Its static Pod, as its own generator writes it."""
    return f"""apiVersion: v1
kind: Pod
metadata:
  name: kube-vip
  namespace: kube-system
spec:
  containers:
  - args:
    - manager
    env:
    - name: vip_arp
      value: "true"
    - name: port
      value: "6443"
    - name: vip_interface
      value: ""
    - name: vip_cidr
      value: "{cidr}"
    - name: vip_subnet
      value: "{cidr}"
    - name: cp_enable
      value: "true"
    - name: cp_namespace
      value: kube-system
    - name: vip_leaderelection
      value: "true"
    - name: vip_leasename
      value: plndr-cp-lock
    - name: address
      value: 192.0.2.100
    image: {image}
    imagePullPolicy: IfNotPresent
    name: kube-vip
    securityContext:
      capabilities:
        add: [NET_ADMIN, NET_RAW]
    volumeMounts:
    - mountPath: /etc/kubernetes/admin.conf
      name: kubeconfig
  hostAliases:
  - hostnames: [kubernetes]
    ip: 127.0.0.1
  hostNetwork: true
  volumes:
  - hostPath:
      path: {conf}
    name: kubeconfig
status: {{}}
"""


def renew_all(t: Copy, when: datetime = datetime(2026, 12, 14, 20, tzinfo=UTC)) -> None:
    for p in (
        "apiserver",
        "etcd/server",
        "etcd/peer",
        "etcd/healthcheck-client",
        "apiserver-etcd-client",
        "apiserver-kubelet-client",
        "front-proxy-client",
    ):
        if t.place(f"{PKI}/{p}.crt").exists():
            reissue(t, p, now=when)
    for c in ("admin.conf", "controller-manager.conf", "scheduler.conf"):
        edit_kubeconfig(t, "/etc/kubernetes/" + c, issued=client(t, c, when))
    for c in [*t.place(PKI).rglob("*.crt"), *t.place("/etc/kubernetes").glob("*.conf")]:
        if c.stat().st_nlink == 1:
            os.utime(c, (when.timestamp(),) * 2)


ENC = """apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aescbc:
      keys:
      - name: key1
        secret: %s
%s"""


K1 = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


K2 = base64.b64encode(b"0123456789abcdefFEDCBA9876543210").decode()


def encrypt(t: Copy, key: str = K1, tail: str = "  - identity: {}\n") -> None:
    t.write(PKI + "/encryption.yaml", ENC % (key, tail), 0o600)
    t.flag("kube-apiserver", "encryption-provider-config", PKI + "/encryption.yaml")


ETCD = MANIFESTS + "/etcd.yaml"


API = MANIFESTS + "/kube-apiserver.yaml"


KCM = MANIFESTS + "/kube-controller-manager.yaml"


SCH = MANIFESTS + "/kube-scheduler.yaml"


AVC = 'type=AVC msg=audit(1797288600.123:412): avc:  denied  { write } for  pid=3112 comm="etcd" name="member" dev="sda1" ino=1312 scontext=system_u:system_r:container_t:s0:c1,c2 tcontext=system_u:object_r:var_lib_t:s0 tclass=dir permissive=0\n'


def proxy(t: Copy, noproxy: str = "127.0.0.1,localhost") -> None:
    for m in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        t.sub(
            f"{MANIFESTS}/{m}.yaml",
            r"\n    image: ",
            f"\n    env:\n    - name: HTTP_PROXY\n      value: http://proxy.example.org:3128\n    - name: HTTPS_PROXY\n      value: http://proxy.example.org:3128\n    - name: NO_PROXY\n      value: {noproxy}\n    image: ",
        )


def files_cfg(t: Copy) -> None:
    t.write(
        "/etc/haproxy/haproxy.cfg",
        "frontend k8s\n    bind 0.0.0.0:6443\n    mode tcp\n    default_backend k8s\nbackend k8s\n    mode tcp\n    server cp1 192.0.2.111:6443 check fall 3 rise 2\n    server cp2 192.0.2.112:6443 check fall 3 rise 2\n",
    )


def fs(t: Copy, **kw: int) -> None:
    t.write(
        "/drtool/filesystems.json",
        json.dumps(
            [
                {
                    "mount": "/",
                    "size": 50_000_000_000,
                    "free": 20_000_000_000,
                    "inodes": 3_000_000,
                    "inodesFree": 2_000_000,
                }
                | kw
            ]
        ),
    )


ENV = "/var/lib/kubelet/kubeadm-flags.env"


CFG = "/var/lib/kubelet/config.yaml"


TOML = "/etc/containerd/config.toml"


EVERY = "single-1.34 single-1.36 single-1.37 ha-vip-cp1-1.37 ha-vip-cp2-1.37 ha-dns-cp1-1.36 external-etcd-1.36 dualstack-1.37"


def kargs(t: Copy, arg: str) -> None:
    t.sub(ENV, r'"\n?$', f' {arg}"\n')


def setting(t: Copy, key: str, value: str) -> None:
    s = re.sub(rf"(?m)^{key}: .*\n", "", t.read(CFG))
    t.write(CFG, s + f"{key}: {value}\n")


V3 = """version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'registry.k8s.io/pause:3.10.1'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = %s
"""


def renewed_past(t: Copy, path: str) -> None:
    reissue(t, path, now=datetime(2026, 11, 30, 5, tzinfo=UTC), life=timedelta(days=9))


ZONE = '<?xml version="1.0" encoding="utf-8"?>\n<zone>\n  <short>Public</short>\n  <service name="ssh"/>\n%s</zone>\n'


def firewalld(t: Copy, ports: str = "") -> None:
    t.write("/usr/lib/systemd/system/firewalld.service", "[Unit]\nDescription=firewalld\n")
    t.place("/etc/systemd/system/multi-user.target.wants").mkdir(parents=True, exist_ok=True)
    t.place("/etc/systemd/system/multi-user.target.wants/firewalld.service").symlink_to(
        "/usr/lib/systemd/system/firewalld.service"
    )
    t.write("/etc/firewalld/firewalld.conf", "DefaultZone=public\nFlushAllOnReload=yes\n")
    t.write("/etc/firewalld/zones/public.xml", ZONE % ports)


PORTS = "".join(f'  <port port="{p}" protocol="tcp"/>\n' for p in ("6443", "2379-2380", "10250", "10257", "10259"))


def two_nics(t: Copy) -> None:
    t.replace(
        "/proc/net/fib_trie",
        f"     |-- {t.address}\n",
        f"     |-- 10.0.2.15\n        /32 host LOCAL\n     |-- {t.address}\n",
    )


UNKNOWN = 'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \\"unix:///var/run/containerd/containerd.sock\\": rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService"'


LOUD = (
    'W1214 22:50:00.000000       1 logging.go:59] [core] [Channel #1 SubChannel #2] grpc: addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2379"}. Err: connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused"',
    "F1214 22:50:01.000000       1 instance.go:226] Error creating leases: error creating storage factory: context deadline exceeded",
)
