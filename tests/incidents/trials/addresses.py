"""Addresses, names in certificates, virtual addresses."""

from __future__ import annotations

from tests.builders.pki import reissue
from tests.incidents.trials.changes import (
    ALL,
    API,
    kargs,
    kube_vip,
    readdress,
    two_nics,
)
from tests.incidents.trials.trial import MANIFESTS, PKI, Copy, Trials, beside

TRIALS = Trials()
on = TRIALS.on


@on(
    "node-ip-changed-dhcp-apiserver-san",
    "single-1.34 single-1.37 ha-vip-cp1-1.37 ha-vip-cp2-1.37 ha-dns-cp1-1.36 dualstack-1.37 external-etcd-1.36 lab-live-1.37",
    "node-address-changed",
)
def kernel_only(t: Copy) -> None:
    readdress(t)


@on("node-ip-changed-dhcp-apiserver-san", "single-1.36 dualstack-1.37 ha-vip-cp1-1.37", "node-address-changed")
def with_log(t: Copy) -> None:
    n = readdress(t)
    t.unit("kernel", f"eth0: DHCPv4 address {n}/24 via 192.0.2.1")
    t.unit(
        "kubelet",
        f'E1214 22:50:00.000000     812 reflector.go:147] Failed to watch *v1.Node: Get "https://{t.address}:6443/api/v1/nodes": dial tcp {t.address}:6443: connect: no route to host',
    )
    t.says(
        "etcd",
        '{"level":"fatal","ts":"2026-12-14T22:50:00.000000Z","caller":"etcdmain/etcd.go:204","msg":"discovery failed","error":"listen tcp %s:2380: bind: cannot assign requested address","stacktrace":"go.etcd.io/etcd"}'
        % t.address,
    )
    t.says(
        "kube-apiserver",
        'W1214 22:50:00.000000       1 logging.go:59] [core] [Channel #1 SubChannel #2] grpc: addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2379"}. Err: connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused"',
        "F1214 22:50:00.000000       1 instance.go:226] Error creating leases: error creating storage factory: context deadline exceeded",
    )


@on("node-ip-changed-dhcp-apiserver-san", "single-1.37 single-1.34 ha-dns-cp1-1.36", "node-address-changed")
def hosts_follow(t: Copy) -> None:
    t.replace("/etc/hosts", t.address, readdress(t))


@on("node-ip-changed-dhcp-apiserver-san", "single-1.37 ha-vip-cp1-1.37", "node-address-changed")
def netplan_new(t: Copy) -> None:
    n = readdress(t)
    t.write(
        "/etc/netplan/50-cloud-init.yaml",
        f"network:\n  version: 2\n  ethernets:\n    eth0:\n      addresses: [{n}/24]\n",
    )


@on("node-ip-changed-only-kubeconfigs-edited", "single-1.34 single-1.37", "mixed-old-new-address")
def confs(t: Copy) -> None:
    n = readdress(t)
    t.replace("/etc/hosts", t.address, n)
    for c in (*ALL, "super-admin.conf"):
        if t.place("/etc/kubernetes/" + c).exists():
            t.replace("/etc/kubernetes/" + c, t.address, n)
    t.says(
        "etcd",
        '{"level":"fatal","ts":"2026-12-14T22:50:00.000000Z","caller":"etcdmain/etcd.go:204","msg":"discovery failed","error":"listen tcp %s:2380: bind: cannot assign requested address"}'
        % t.address,
    )


@on("node-ip-changed-only-kubeconfigs-edited", "ha-dns-cp1-1.36", "mixed-old-new-address")
def dns_hosts(t: Copy) -> None:
    n = readdress(t)
    t.write("/etc/hosts", f"127.0.0.1 localhost\n{n} cp-1 k8s.example.org\n")
    for c in ("controller-manager.conf", "scheduler.conf", "kubelet.conf"):
        if t.address in t.read("/etc/kubernetes/" + c):
            t.replace("/etc/kubernetes/" + c, t.address, n)


@on("node-ip-changed-only-kubeconfigs-edited", "single-1.36 ha-vip-cp1-1.37 lab-live-1.37", "mixed-old-new-address")
def apiserver_and_confs(t: Copy) -> None:
    n = readdress(t)
    for c in ALL:
        if t.address in t.read("/etc/kubernetes/" + c):
            t.replace("/etc/kubernetes/" + c, t.address, n)
    t.replace(MANIFESTS + "/kube-apiserver.yaml", t.address, n)


@on(
    "node-ip-changed-only-kubeconfigs-edited",
    "single-1.36 single-1.37",
    "mixed-old-new-address",
    "san-missing-own-address",
)
def manifests_without_certs(t: Copy) -> None:
    n = readdress(t)
    for c in ALL:
        if t.address in t.read("/etc/kubernetes/" + c):
            t.replace("/etc/kubernetes/" + c, t.address, n)
    for m in ("kube-apiserver", "etcd"):
        t.replace(f"{MANIFESTS}/{m}.yaml", t.address, n)


@on("certs-renewed-on-one-node-copied-to-others", "ha-vip-cp2-1.37", "cert-of-other-node")
def real_copy(t: Copy) -> None:
    for p in ("apiserver", "etcd/server", "etcd/peer"):
        for e in ("crt", "key"):
            t.write(f"{PKI}/{p}.{e}", beside("ha-vip-cp1-1.37", f"{PKI}/{p}.{e}").read_bytes(), 0o600)


@on("certs-renewed-on-one-node-copied-to-others", "ha-vip-cp2-1.37", "cert-of-other-node")
def whole_pki_with_log(t: Copy) -> None:
    for p in (
        "apiserver",
        "etcd/server",
        "etcd/peer",
        "etcd/healthcheck-client",
        "apiserver-etcd-client",
        "apiserver-kubelet-client",
        "front-proxy-client",
    ):
        for e in ("crt", "key"):
            t.write(f"{PKI}/{p}.{e}", beside("ha-vip-cp1-1.37", f"{PKI}/{p}.{e}").read_bytes(), 0o600)
    t.says(
        "etcd",
        '{"level":"warn","ts":"2026-12-14T22:50:00.000000Z","caller":"embed/config_logging.go:188","msg":"rejected connection on peer endpoint","remote-addr":"192.0.2.112:41464","server-name":"","error":"tls: \\"192.0.2.112\\" does not match any of DNSNames [\\"cp-1\\" \\"localhost\\"]"}',
    )


@on(
    "certs-renewed-on-one-node-copied-to-others",
    "single-1.34 ha-dns-cp1-1.36 ha-vip-cp1-1.37 lab-one-door-cp2-1.37",
    "cert-of-other-node",
    "endpoint-is-one-node,cert-of-other-node",
    "cert-of-other-node,endpoint-is-one-node",
)
def reissued(t: Copy) -> None:
    for p in ("etcd/server", "etcd/peer"):
        reissue(t, p, common_name="host1", names=["host1", "localhost", "192.0.2.1", "127.0.0.1", "::1"])
    reissue(
        t,
        "apiserver",
        names=[
            "host1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "10.96.0.1",
            "192.0.2.1",
            "192.0.2.100",
            "k8s.example.org",
        ],
    )


@on("certs-renewed-on-one-node-copied-to-others", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "cert-of-other-node")
def two_trees(a: Copy, b: Copy) -> None:
    for p in ("apiserver", "etcd/server", "etcd/peer"):
        for e in ("crt", "key"):
            b.write(f"{PKI}/{p}.{e}", a.read(f"{PKI}/{p}.{e}"), 0o600)


@on("etcd-static-pod-fails-after-renew-copied", "ha-vip-cp2-1.37", "cert-of-other-node", "san-missing-own-address")
def etcd_only(t: Copy) -> None:
    for p in ("etcd/server", "etcd/peer", "etcd/healthcheck-client"):
        for e in ("crt", "key"):
            t.write(f"{PKI}/{p}.{e}", beside("ha-vip-cp1-1.37", f"{PKI}/{p}.{e}").read_bytes(), 0o600)


@on(
    "etcd-static-pod-fails-after-renew-copied",
    "single-1.37 dualstack-1.37",
    "cert-of-other-node",
    "san-missing-own-address",
)
def etcd_reissued(t: Copy) -> None:
    for p in ("etcd/server", "etcd/peer"):
        reissue(t, p, common_name="cp-9", names=["cp-9", "localhost", "192.0.2.119", "127.0.0.1", "::1"])


@on("etcd-peer-source-is-vip", "ha-vip-cp1-1.37 ha-vip-cp2-1.37", "vip-prefix-source-address")
def keepalived(t: Copy) -> None:
    t.write(
        "/etc/keepalived/keepalived.conf",
        "vrrp_instance VI_1 {\n  state MASTER\n  interface eth0\n  virtual_router_id 51\n  priority 101\n  virtual_ipaddress {\n    192.0.2.100/24\n  }\n}\n",
    )
    t.says(
        "etcd",
        '{"level":"warn","ts":"2026-12-14T22:50:00.000000Z","caller":"embed/config_logging.go:188","msg":"rejected connection on peer endpoint","remote-addr":"192.0.2.100:65036","server-name":"","ip-addresses":["192.0.2.111","127.0.0.1","::1"],"dns-names":["cp-1","localhost"],"error":"tls: \\"192.0.2.100\\" does not match any of DNSNames [\\"cp-1\\" \\"localhost\\"]"}',
    )


@on("etcd-peer-source-is-vip", "ha-vip-cp1-1.37 ha-vip-cp2-1.37", "vip-prefix-source-address")
def keepalived_first_on_nic(t: Copy) -> None:
    t.write(
        "/etc/keepalived/keepalived.conf",
        "vrrp_instance VI_1 {\n  state MASTER\n  interface eth0\n  virtual_router_id 51\n  priority 101\n  virtual_ipaddress {\n    192.0.2.100/24 dev eth0\n  }\n}\n",
    )
    t.replace(
        "/proc/net/fib_trie",
        f"     |-- {t.address}\n",
        f"     |-- 192.0.2.0\n        /24 link UNICAST\n     |-- 192.0.2.100\n        /32 host LOCAL\n     |-- {t.address}\n",
    )
    t.says(
        "etcd",
        '{"level":"warn","ts":"2026-12-14T22:50:00.000000Z","caller":"embed/config_logging.go:188","msg":"rejected connection on peer endpoint","remote-addr":"192.0.2.100:65036","server-name":"","error":"tls: \\"192.0.2.100\\" does not match any of DNSNames [\\"cp-1\\" \\"localhost\\"]"}',
        '{"level":"warn","ts":"2026-12-14T22:50:00.000000Z","caller":"rafthttp/probing_status.go:68","msg":"prober detected unhealthy status","round-tripper-name":"ROUND_TRIPPER_SNAPSHOT","remote-peer-id":"57fe4be65c84dbc","rtt":"0s","error":"EOF"}',
    )


@on("etcd-peer-source-is-vip", "ha-vip-cp1-1.37", "vip-prefix-source-address")
def kube_vip_pod(t: Copy) -> None:
    t.write(MANIFESTS + "/kube-vip.yaml", kube_vip(cidr="24"))
    t.says(
        "etcd",
        '{"level":"warn","ts":"2026-12-14T22:50:00.000000Z","caller":"embed/config_logging.go:188","msg":"rejected connection on peer endpoint","remote-addr":"192.0.2.100:65036","server-name":"","error":"tls: \\"192.0.2.100\\" does not match any of DNSNames [\\"cp-1\\" \\"localhost\\"]"}',
    )


@on("etcd-operator-or-3.2-peer-dns-check", "ha-vip-cp1-1.37 ha-vip-cp2-1.37 single-1.34", "san-missing-own-address")
def dns_only(t: Copy) -> None:
    reissue(t, "etcd/peer", names=[t.design.name, "localhost"])


@on("etcd-operator-or-3.2-peer-dns-check", "ha-vip-cp1-1.37 ha-vip-cp2-1.37", "san-missing-own-address")
def dns_unresolved_with_log(t: Copy) -> None:
    reissue(t, "etcd/peer", names=["infra0.example.org"])
    t.says(
        "etcd",
        '{"level":"warn","ts":"2026-12-14T22:50:00.000000Z","caller":"embed/config_logging.go:188","msg":"rejected connection on peer endpoint","remote-addr":"192.0.2.113:44986","server-name":"","error":"tls: \\"192.0.2.113\\" does not match any of DNSNames [\\"infra0.example.org\\"]"}',
    )


@on("kube-vip-old-raft-config", "ha-vip-cp1-1.37", "flag-unknown-or-removed", "")
def args(t: Copy) -> None:
    m = kube_vip().replace(
        "    - manager\n",
        "    - start\n    - --localPeer=cp-1:192.0.2.111:10000\n    - --remotePeers=cp-2:192.0.2.112:10000\n    - --lbPort=8443\n    - --startAsLeader=true\n",
    )
    t.write(MANIFESTS + "/kube-vip.yaml", m)


@on("kube-vip-old-raft-config", "ha-vip-cp1-1.37", "flag-unknown-or-removed", "")
def config_file(t: Copy) -> None:
    t.write(
        "/etc/kube-vip/config.yaml",
        "localPeer:\n  id: cp-1\n  address: 192.0.2.111\n  port: 10000\nremotePeers:\n- id: cp-2\n  address: 192.0.2.112\n  port: 10000\nvip: 192.0.2.100\nloadBalancers:\n- name: Kubernetes Control Plane\n  type: tcp\n  port: 8443\n  bindToVip: true\n  backends:\n  - port: 6443\n    address: 192.0.2.111\n",
    )
    m = kube_vip(image="plndr/kube-vip:0.1.1").replace(
        "    - manager\n", "    - start\n    - -c\n    - /etc/kube-vip/config.yaml\n"
    )
    t.write(MANIFESTS + "/kube-vip.yaml", m)


@on("lb-hairpin-own-backend", "ha-dns-cp1-1.36", "lb-hairpin")
def timeouts(t: Copy) -> None:
    t.sub("/etc/kubernetes/kubelet.conf", r"server: \S+", "server: https://k8s.example.org:6443")
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 controller.go:195] "Failed to update lease" err="Put \\"https://k8s.example.org:6443/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/cp-1?timeout=10s\\": dial tcp 192.0.2.240:6443: i/o timeout"',
        *[
            f'E1214 22:5{i}:00.000000     812 controller.go:195] "Failed to update lease" err="Put \\"https://k8s.example.org:6443/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/cp-1?timeout=10s\\": dial tcp 192.0.2.240:6443: i/o timeout"'
            for i in range(5)
        ],
    )


@on("lb-hairpin-own-backend", "ha-vip-cp1-1.37 ha-vip-cp2-1.37", "lb-hairpin")
def vip_lb(t: Copy) -> None:
    t.sub("/etc/kubernetes/kubelet.conf", r"server: \S+", "server: https://192.0.2.100:6443")
    t.unit(
        "kubelet",
        *[
            f'E1214 22:5{i}:00.000000     812 controller.go:195] "Failed to update lease" err="Put \\"https://192.0.2.100:6443/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/cp-1?timeout=10s\\": dial tcp 192.0.2.100:6443: i/o timeout"'
            for i in range(5)
        ],
    )


@on("lb-hairpin-own-backend trap", "ha-dns-cp1-1.36", "")
def override(t: Copy) -> None:
    t.append("/etc/hosts", "127.0.0.1 k8s.example.org\n")


@on("lb-hairpin-own-backend trap", "ha-dns-cp1-1.36", "")
def override_own(t: Copy) -> None:
    t.append("/etc/hosts", f"{t.address} k8s.example.org\n")


@on(
    "multi-nic-default-route-address",
    "ha-vip-cp2-1.37 ha-dns-cp1-1.36",
    "advertise-address-not-local",
    "node-ip-vs-advertise-subnet",
)
def nat(t: Copy) -> None:
    two_nics(t)
    t.flag("kube-apiserver", "advertise-address", "10.0.2.15")


@on(
    "multi-nic-default-route-address",
    "single-1.37 ha-vip-cp1-1.37",
    "advertise-address-not-local",
    "node-ip-vs-advertise-subnet",
)
def nat_probes(t: Copy) -> None:
    two_nics(t)
    t.replace(API, t.address, "10.0.2.15")


@on(
    "multi-nic-default-route-address",
    "ha-vip-cp1-1.37+ha-vip-cp2-1.37",
    "advertise-address-not-local",
    "node-ip-vs-advertise-subnet",
)
def same_nat(a: Copy, b: Copy) -> None:
    for t in (a, b):
        nat(t)


@on(
    "multi-nic-default-route-address",
    "single-1.37 ha-vip-cp1-1.37",
    "advertise-address-not-local",
    "node-ip-vs-advertise-subnet",
    "",
)
def node_ip(t: Copy) -> None:
    two_nics(t)
    kargs(t, "--node-ip=10.0.2.15")


@on("multi-nic-default-route-address", "single-1.37 external-etcd-1.36", "advertise-address-not-local")
def elsewhere(t: Copy) -> None:
    t.replace(API, t.address, "10.0.2.16")
