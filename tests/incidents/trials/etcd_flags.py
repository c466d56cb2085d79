"""etcd's flags and surroundings, TLS options, who dials it."""

from __future__ import annotations

from tests.incidents.trials.changes import (
    AVC,
    ETCD,
    files_cfg,
)
from tests.incidents.trials.stored import (
    line,
)
from tests.incidents.trials.trial import MANIFESTS, Copy, Trials

TRIALS = Trials()
on = TRIALS.on


@on(
    "etcd-image-rolled-back-lower-than-cluster-version",
    "single-1.37 single-1.34 ha-vip-cp2-1.37 lab-live-1.37 ha-dns-cp1-1.36",
    "etcd-version-downgrade",
)
def image(t: Copy) -> None:
    t.sub(ETCD, r"image: \S+", "image: registry.k8s.io/etcd:3.5.21-0")


@on("etcd-image-rolled-back-lower-than-cluster-version", "single-1.37 ha-vip-cp1-1.37", "etcd-version-downgrade")
def image_and_flags_and_log(t: Copy) -> None:
    t.sub(ETCD, r"image: \S+", "image: registry.k8s.io/etcd:3.6.8-0")
    t.says(
        "etcd",
        line(
            "fatal",
            "invalid downgrade; server version is lower than determined cluster version",
            caller="membership/downgrade.go:60",
            **{"current-server-version": "3.6.8", "determined-cluster-version": "3.7"},
        ),
    )


@on("etcd-3.5-data-inconsistency", "ha-vip-cp2-1.37 ha-dns-cp1-1.36", "etcd-inconsistent-members")
def corrupt_log(t: Copy) -> None:
    t.says(
        "etcd",
        line(
            "fatal",
            "discovery failed",
            caller="etcdmain/etcd.go:204",
            error="etcdserver: found data inconsistency with peers",
        ),
        line(
            "warn",
            "found different hash values from remote peer",
            caller="etcdserver/corrupt.go:95",
            **{
                "local-member-id": "91bc",
                "local-member-revision": 300,
                "local-member-hash": 12,
                "remote-peer-id": "8211",
                "remote-peer-hash": 13,
            },
        ),
    )


@on("etcd-3.5-data-inconsistency trap", "single-1.34 single-1.37", "")
def older_patch(t: Copy) -> None:
    t.sub(ETCD, r"(image: \S+:3\.\d+)\.\d+-0", r"\1.0-0")


@on("etcd-name-not-in-initial-cluster", "single-1.37 single-1.34 ha-vip-cp2-1.37", "etcd-name-vs-initial-cluster")
def no_member(t: Copy) -> None:
    t.remove("/var/lib/etcd/member")
    t.flag("etcd", "name", "node-2")
    t.says(
        "etcd",
        line(
            "fatal",
            "failed to start etcd",
            caller="etcdmain/etcd.go:204",
            error='couldn\'t find local name "node-2" in the initial cluster configuration',
        ),
    )


@on("etcd-name-not-in-initial-cluster", "single-1.36 dualstack-1.37", "etcd-name-vs-initial-cluster")
def no_member_quiet(t: Copy) -> None:
    t.remove("/var/lib/etcd/member")
    t.flag("etcd", "initial-cluster", f"cp-1.example.org=https://{t.address}:2380")


@on("etcd-name-not-in-initial-cluster trap", "single-1.37 ha-vip-cp2-1.37", "")
def member_present(t: Copy) -> None:
    t.flag("etcd", "initial-cluster", f"other=https://{t.address}:2380")


@on("etcd-selinux-denied", "single-1.37 ha-vip-cp1-1.37", "selinux-avc")
def config_and_audit(t: Copy) -> None:
    t.write("/etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=targeted\n")
    t.append("/var/log/audit/audit.log", AVC)


@on("etcd-selinux-denied", "single-1.34 ha-dns-cp1-1.36", "selinux-avc")
def with_logs(t: Copy) -> None:
    t.write("/sys/fs/selinux/enforce", "1")
    t.write(
        "/etc/selinux/config", "# This file controls the state of SELinux\nSELINUX=enforcing\nSELINUXTYPE=targeted\n"
    )
    t.append("/var/log/audit/audit.log", AVC)
    t.says(
        "etcd",
        line(
            "fatal",
            "discovery failed",
            caller="etcdmain/etcd.go:204",
            error="cannot access data directory: open /var/lib/etcd/.touch: permission denied",
        ),
    )


@on("etcd-selinux-denied", "single-1.36", "selinux-avc")
def apiserver_cert(t: Copy) -> None:
    t.write("/etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=targeted\n")
    t.append(
        "/var/log/audit/audit.log",
        AVC.replace("etcd", "kube-apiserver").replace("write", "read").replace("var_lib_t", "etc_t"),
    )


@on("etcd-selinux-denied trap", "single-1.36 single-1.37", "")
def enforcing(t: Copy) -> None:
    t.write("/etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=targeted\n")


@on("selinux-back-to-enforcing-after-reboot", "single-1.34 external-etcd-1.36 lab-live-1.37", "selinux-avc")
def _(t: Copy) -> None:
    t.write("/etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=targeted\n")
    t.append(
        "/var/log/audit/audit.log",
        AVC.replace("etcd", "kube-apiserver") if "etcd" not in t.root.name and not t.place(ETCD).exists() else AVC,
    )


@on("haproxy-and-apiserver-same-port", "ha-vip-cp1-1.37 ha-dns-cp1-1.36 single-1.37", "port-conflict")
def files(t: Copy) -> None:
    t.write(
        "/etc/haproxy/haproxy.cfg",
        "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\nfrontend apiserver\n  bind *:6443\n  default_backend apiservers\nbackend apiservers\n  balance roundrobin\n  server cp-1 192.0.2.111:6443 check\n  server cp-2 192.0.2.112:6443 check\n",
    )


@on("haproxy-and-apiserver-same-port", "ha-vip-cp2-1.37 single-1.34", "port-conflict")
def with_log5(t: Copy) -> None:
    files_cfg(t)
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 run.go:72] "command failed" err="failed to create listener: failed to listen on 0.0.0.0:6443: listen tcp 0.0.0.0:6443: bind: address already in use"',
    )


@on("haproxy-and-apiserver-same-port trap", "ha-vip-cp1-1.37 ha-vip-cp2-1.37", "")
def other_port(t: Copy) -> None:
    files_cfg(t)
    t.replace("/etc/haproxy/haproxy.cfg", "0.0.0.0:6443", "*:8443")


@on("tls-cipher-suites-without-http2-required", "single-1.37 single-1.34 external-etcd-1.36", "tls-option-invalid")
def api(t: Copy) -> None:
    t.flag(
        "kube-apiserver",
        "tls-cipher-suites",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    )


@on("tls-cipher-suites-without-http2-required", "single-1.36 ha-vip-cp1-1.37", "tls-option-invalid")
def api_log(t: Copy) -> None:
    api(t)
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 run.go:72] "command failed" err="http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)"',
    )


@on("tls-cipher-suites-without-http2-required", "single-1.37 ha-dns-cp1-1.36", "tls-option-invalid")
def etcd(t: Copy) -> None:
    t.flag("etcd", "cipher-suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    t.says("etcd", line("warn", "accept error", error="accept tcp [::]:2379: use of closed network connection"))


@on("tls-cipher-suites-without-http2-required trap", "single-1.37", "")
def tls13(t: Copy) -> None:
    api(t)
    t.flag("kube-apiserver", "tls-min-version", "VersionTLS13")


@on("tls-cipher-suites-without-http2-required trap", "single-1.37 external-etcd-1.36", "")
def full(t: Copy) -> None:
    t.flag(
        "kube-apiserver",
        "tls-cipher-suites",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    )


@on("etcd-tls13-only-with-old-apiserver", "single-1.34 single-1.36", "tls-option-invalid")
def old_api(t: Copy) -> None:
    t.flag("etcd", "tls-min-version", "TLS1.3")
    for m in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        t.sub(f"{MANIFESTS}/{m}.yaml", r"(image: \S+:)v1.\d+.\d+", r"\1v1.27.16")
    t.sub(ETCD, r"image: \S+", lambda m: m[0]) if False else None


@on("etcd-tls13-only-with-old-apiserver trap", "single-1.34 single-1.37", "")
def new_api(t: Copy) -> None:
    t.flag("etcd", "tls-min-version", "TLS1.3")


@on("etcd-extraargs-pinned-address-join", "ha-vip-cp2-1.37", "etcd-urls-not-local")
def pinned(t: Copy) -> None:
    for f, port in (("initial-advertise-peer-urls", 2380), ("advertise-client-urls", 2379)):
        t.flag("etcd", f, f"https://192.0.2.111:{port}")


@on("etcd-extraargs-pinned-address-join", "ha-vip-cp2-1.37", "etcd-urls-not-local")
def pinned_listen(t: Copy) -> None:
    pinned(t)
    t.flag("etcd", "listen-client-urls", "https://127.0.0.1:2379,https://192.0.2.111:2379")
    t.flag("etcd", "listen-peer-urls", "https://192.0.2.111:2380")


@on(
    "etcd-extraargs-pinned-address-join",
    "ha-vip-cp2-1.37 lab-one-door-cp2-1.37",
    "etcd-urls-not-local",
    "etcd-urls-not-local,endpoint-is-one-node",
)
def pinned_config(t: Copy) -> None:
    one = "192.0.2.111" if "vip" in t.read("/etc/hosts") + "vip" and t.address.startswith("192") else "198.51.100.11"
    t.flag("etcd", "initial-advertise-peer-urls", f"https://{one}:2380")
    for p in ("/kubeadm-config.yaml", "/etc/kubernetes/kubeadm-config.yaml"):
        if t.place(p).exists():
            t.append(
                p,
                f"etcd:\n  local:\n    extraArgs:\n    - name: initial-advertise-peer-urls\n      value: https://{one}:2380\n",
            )
            break


@on("etcd-extraargs-pinned-address-join", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "etcd-urls-not-local")
def pinned_two(a: Copy, b: Copy) -> None:
    pinned(b)


@on("etcd-localhost-resolves-to-non-loopback", "single-1.37 ha-vip-cp1-1.37 single-1.34", "localhost-unresolvable")
def no_line(t: Copy) -> None:
    t.write("/etc/hosts", f"{t.address} {t.design.name}\n")
    t.write("/etc/resolv.conf", "nameserver 192.0.2.53\nsearch example.org\n")
    t.says(
        "etcd",
        line(
            "fatal",
            "discovery failed",
            caller="etcdmain/etcd.go:204",
            error="listen tcp 192.0.2.198:2380: bind: cannot assign requested address",
        ),
    )


@on(
    "etcd-localhost-resolves-to-non-loopback",
    "ha-dns-cp1-1.36 external-etcd-1.36 single-1.36",
    "localhost-unresolvable",
)
def lookup(t: Copy) -> None:
    t.write("/etc/hosts", f"{t.address} {t.design.name}\n")
    t.write("/etc/resolv.conf", "nameserver 192.0.2.53\nsearch example.org\n")
    t.says(
        "kube-apiserver",
        'W1214 22:50:00.000000       1 logging.go:59] [core] grpc: addrConn.createTransport failed to connect to {Addr: "localhost:2379"}. Err: connection error: desc = "transport: Error while dialing: dial tcp: lookup localhost on 192.0.2.53:53: no such host"',
    )


@on("apiserver-cannot-reach-etcd-endpoint", "single-1.37 ha-vip-cp1-1.37 single-1.34", "etcd-servers-vs-etcd")
def port(t: Copy) -> None:
    t.flag("kube-apiserver", "etcd-servers", "https://127.0.0.1:4001")


@on("apiserver-cannot-reach-etcd-endpoint", "single-1.36 ha-dns-cp1-1.36 lab-live-1.37", "etcd-servers-vs-etcd")
def host(t: Copy) -> None:
    t.flag("kube-apiserver", "etcd-servers", "https://192.0.2.199:2379")
    t.says(
        "kube-apiserver",
        "F1214 22:50:00.000000       1 instance.go:226] Error creating leases: error creating storage factory: context deadline exceeded",
    )


@on("apiserver-cannot-reach-etcd-endpoint", "single-1.37 dualstack-1.37", "etcd-servers-vs-etcd")
def scheme(t: Copy) -> None:
    t.flag("kube-apiserver", "etcd-servers", "http://127.0.0.1:2379")


@on("apiserver-cannot-reach-etcd-endpoint", "single-1.34", "etcd-servers-vs-etcd")
def no_cert(t: Copy) -> None:
    t.flag("kube-apiserver", "etcd-certfile", None)
    t.flag("kube-apiserver", "etcd-keyfile", None)


@on("apiserver-cannot-reach-etcd-endpoint", "external-etcd-1.36", "etcd-servers-vs-etcd")
def external(t: Copy) -> None:
    t.flag("kube-apiserver", "etcd-servers", "https://192.0.2.131:2378,https://192.0.2.132:2378")


@on("apiserver-cannot-reach-etcd-endpoint symptom", "single-1.37 single-1.34", "")
def symptom_only(t: Copy) -> None:
    t.says(
        "kube-apiserver",
        'W1214 22:50:00.000000       1 logging.go:59] [core] [Channel #1 SubChannel #2] grpc: addrConn.createTransport failed to connect to {Addr: "127.0.0.1:2379"}. Err: connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:2379: connect: connection refused"',
    )


@on("first-etcd-endpoint-down-old-client", "external-etcd-1.36", "")
def down(t: Copy) -> None:
    t.says(
        "kube-apiserver",
        'W1214 22:50:00.000000       1 logging.go:59] [core] [Channel #1 SubChannel #2] grpc: addrConn.createTransport failed to connect to {Addr: "192.0.2.131:2379"}. Err: connection error: desc = "transport: Error while dialing: dial tcp 192.0.2.131:2379: connect: connection refused"',
    )
