"""Certificates, keys and authorities."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from tests.builders.pki import CURRENT, client, edit_kubeconfig, new_authority, reissue, rotate_kubelet
from tests.builders.tree import BORN
from tests.incidents.trials.changes import (
    ALL,
    expired,
    renew_all,
    renewed_past,
)
from tests.incidents.trials.stored import (
    line,
)
from tests.incidents.trials.trial import PKI, Copy, Trials

TRIALS = Trials()
on = TRIALS.on


@on("kubelet-client-cert-expired-bootstrap-missing", "single-1.37 ha-vip-cp2-1.37 external-etcd-1.36", "cert-expired")
def files(t: Copy) -> None:
    rotate_kubelet(t, expired(t, "kubelet.conf"))


@on("kubelet-client-cert-expired-bootstrap-missing", "single-1.34 ha-dns-cp1-1.36 lab-live-1.37", "cert-expired")
def with_journal(t: Copy) -> None:
    rotate_kubelet(t, expired(t, "kubelet.conf"))
    t.unit(
        "kubelet",
        "E1214 22:50:00.000000     812 bootstrap.go:266] part of the existing bootstrap client certificate in /etc/kubernetes/kubelet.conf is expired: 2026-11-01 00:00:00 +0000 UTC",
        'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to run Kubelet: unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf: no such file or directory"',
    )


@on("kubelet-client-cert-expired-bootstrap-missing", "single-1.36", "cert-expired")
def same_file(t: Copy) -> None:
    i = expired(t, "kubelet.conf")
    t.write("/var/lib/kubelet/pki/kubelet-client-2026-11-30-03-30-00.pem", i.certificate_pem + i.key_pem, 0o600)


@on(
    "kubelet-client-current-not-symlink-or-embedded",
    "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36",
    "kubelet-client-link",
)
def plain_file(t: Copy) -> None:
    d = t.read("/var/lib/kubelet/pki/kubelet-client-2026-11-30-03-30-00.pem")
    t.place(CURRENT).unlink()
    t.write(CURRENT, d, 0o600)


@on("kubelet-client-current-not-symlink-or-embedded", "single-1.34 ha-vip-cp2-1.37", "kubelet-client-link")
def dangling(t: Copy) -> None:
    t.place("/var/lib/kubelet/pki/kubelet-client-2026-11-30-03-30-00.pem").unlink()


@on("kubelet-client-current-not-symlink-or-embedded", "single-1.36 lab-live-1.37", "kubelet-client-link")
def dangling_elsewhere(t: Copy) -> None:
    t.place(CURRENT).unlink()
    t.place(CURRENT).symlink_to("/var/lib/kubelet/pki/kubelet-client-2026-12-01-01-01-01.pem")


@on("kubelet-client-current-not-symlink-or-embedded", "single-1.37 ha-dns-cp1-1.36", "kubelet-client-link")
def embedded_expired(t: Copy) -> None:
    edit_kubeconfig(t, "/etc/kubernetes/kubelet.conf", issued=expired(t, "kubelet.conf"))
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 authentication.go:73] "Unable to authenticate the request" err="[x509: certificate has expired or is not yet valid: current time 2026-12-14T22:50:00Z is after 2026-11-01T00:00:00Z, verifying certificate SN=1, SKID=, AKID= failed: x509: certificate has expired or is not yet valid]"',
    )


@on("kubelet-client-current-not-symlink-or-embedded", "single-1.36", "kubelet-client-link")
def embedded_expired_quiet(t: Copy) -> None:
    edit_kubeconfig(t, "/etc/kubernetes/kubelet.conf", issued=expired(t, "kubelet.conf"))


@on("kubelet-client-current-not-symlink-or-embedded trap", "single-1.36", "")
def embedded_rotation_off(t: Copy) -> None:
    edit_kubeconfig(
        t, "/etc/kubernetes/kubelet.conf", issued=client(t, "kubelet.conf", datetime(2026, 11, 30, tzinfo=UTC))
    )
    t.replace("/var/lib/kubelet/config.yaml", "rotateCertificates: true", "rotateCertificates: false")


@on("certs-renewed-but-components-not-restarted", "single-1.34 single-1.37", "renewed-not-reloaded")
def logs_after(t: Copy) -> None:
    for c in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        t.says(
            c,
            "I1201 08:00:00.000000       1 serving.go:386] Generated self-signed cert in-memory",
            time="2026-12-01T08:00:00",
        )
    renew_all(t)
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 authentication.go:73] "Unable to authenticate the request" err="[x509: certificate has expired or is not yet valid: current time 2026-12-14T22:50:00Z is after 2026-12-14T10:00:00Z, verifying certificate SN=1 failed: x509: certificate has expired or is not yet valid]"',
    )
    t.says(
        "kube-controller-manager",
        "E1214 22:50:00.000000       1 leaderelection.go:332] error retrieving resource lock kube-system/kube-controller-manager: Unauthorized",
    )


@on("certs-renewed-but-components-not-restarted", "single-1.36 lab-live-1.37", "renewed-not-reloaded")
def kcm(t: Copy) -> None:
    t.says(
        "kube-controller-manager",
        "I1201 08:00:00.000000       1 serving.go:386] Generated self-signed cert in-memory",
        time="2026-12-01T08:00:00",
    )
    renew_all(t)
    t.says(
        "kube-controller-manager",
        'E1214 22:50:00.000000       1 leaderelection.go:448] "Error retrieving lease lock" err="Get \\"https://192.0.2.111:6443/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager?timeout=5s\\": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-12-14T22:50:00Z is after 2026-12-14T10:00:00Z" lock="kube-system/kube-controller-manager"',
    )


@on("front-end-cert-renew-with-docker-restart", "single-1.34 single-1.36", "renewed-not-reloaded")
def etcd_client(t: Copy) -> None:
    t.says(
        "etcd",
        '{"level":"info","ts":"2026-12-01T08:00:00.000000Z","caller":"etcdmain/etcd.go:64","msg":"Running: ","args":["etcd"]}',
        time="2026-12-01T08:00:00",
    )
    t.says(
        "kube-apiserver", "I1201 08:00:00.000000       1 server.go:151] Version: v1.37.2", time="2026-12-01T08:00:00"
    )
    renew_all(t)
    t.says(
        "etcd",
        '{"level":"warn","ts":"2026-12-14T22:50:00.000000Z","caller":"embed/config_logging.go:169","msg":"rejected connection","remote-addr":"127.0.0.1:41000","server-name":"","error":"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-12-14T22:50:00Z is after 2026-12-14T10:00:00Z"}',
    )
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 authentication.go:73] "Unable to authenticate the request" err="[x509: certificate has expired or is not yet valid: current time 2026-12-14T22:50:00Z is after 2026-12-14T10:00:00Z]"',
    )


@on("admin-conf-home-copy-stale", "single-1.34 single-1.37 ha-vip-cp1-1.37", "")
def _(t: Copy) -> None:
    d = t.read("/etc/kubernetes/admin.conf")
    t.write("/root/.kube/config", d, 0o600)
    edit_kubeconfig(t, "/root/.kube/config", issued=expired(t, "admin.conf"))


@on("kubelet-client-cert-in-var-run", "single-1.37 external-etcd-1.36 lab-live-1.37", "kubelet-client-link")
def _(t: Copy) -> None:
    t.sub(
        "/etc/kubernetes/kubelet.conf",
        r"client-certificate: \S+",
        "client-certificate: /var/run/kubernetes/kubelet-client.crt",
    )
    t.sub("/etc/kubernetes/kubelet.conf", r"client-key: \S+", "client-key: /var/run/kubernetes/kubelet-client.key")


@on("kubelet-client-cert-in-var-run", "single-1.34 ha-vip-cp1-1.37", "kubelet-client-link")
def run_dir_there(t: Copy) -> None:
    t.sub(
        "/etc/kubernetes/kubelet.conf",
        r"client-certificate: \S+",
        "client-certificate: /run/kubernetes/kubelet-client-current.pem",
    )
    t.sub("/etc/kubernetes/kubelet.conf", r"client-key: \S+", "client-key: /run/kubernetes/kubelet-client-current.pem")
    t.write("/run/kubernetes/other", "")
    t.remove("/var/lib/kubelet/pki")


@on("kubelet-stale-client-cert-after-reinit", "single-1.37 ha-vip-cp2-1.37 external-etcd-1.36", "issuer-mismatch")
def old_ca(t: Copy) -> None:
    from manifests.pki.issuing import issue_authority, new_key

    old = issue_authority("kubernetes", BORN, new_key("ECDSA-P256"))
    rotate_kubelet(t, client(t, "kubelet.conf", BORN, authority=old))


@on("kubelet-stale-client-cert-after-reinit", "single-1.34 lab-live-1.37", "issuer-mismatch")
def with_log(t: Copy) -> None:
    old_ca(t)
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 authentication.go:73] "Unable to authenticate the request" err="[x509: certificate signed by unknown authority, verifying certificate SN=1, SKID=, AKID=AA:BB failed: x509: certificate signed by unknown authority]"',
    )


@on("front-proxy-client-expired", "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36", "cert-expired")
def fp(t: Copy) -> None:
    renewed_past(t, "front-proxy-client")


@on("front-proxy-client-expired", "single-1.34", "cert-expired")
def fp_log(t: Copy) -> None:
    renewed_past(t, "front-proxy-client")
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 remote_available_controller.go:448] "Unhandled Error" err="v1beta1.metrics.k8s.io failed with: failing or missing response from https://10.96.11.2:443/apis/metrics.k8s.io/v1beta1: bad status from https://10.96.11.2:443/apis/metrics.k8s.io/v1beta1: 401"',
    )


@on("any leaf expired", "single-1.37", "cert-expired")
def etcd_server(t: Copy) -> None:
    renewed_past(t, "etcd/server")
    renewed_past(t, "etcd/peer")


@on("any leaf expired", "single-1.36 external-etcd-1.36", "cert-expired")
def apiserver(t: Copy) -> None:
    renewed_past(t, "apiserver")


@on("any leaf expired", "ha-dns-cp1-1.36", "cert-expired")
def etcd_client(t: Copy) -> None:
    renewed_past(t, "apiserver-etcd-client")


@on("any leaf expired", "single-1.34", "cert-expired")
def all_of_them(t: Copy) -> None:
    for p in (
        "apiserver",
        "etcd/server",
        "etcd/peer",
        "etcd/healthcheck-client",
        "apiserver-etcd-client",
        "apiserver-kubelet-client",
        "front-proxy-client",
    ):
        renewed_past(t, p)
    for c in ALL[:2] + ALL[3:]:
        edit_kubeconfig(t, "/etc/kubernetes/" + c, issued=expired(t, c))
    rotate_kubelet(t, expired(t, "kubelet.conf"))


@on("etcd-ca-confused-with-cluster-ca", "ha-vip-cp2-1.37 single-1.37 single-1.34", "issuer-mismatch")
def overwritten(t: Copy) -> None:
    for e in ("crt", "key"):
        t.write(f"{PKI}/etcd/ca.{e}", t.read(f"{PKI}/ca.{e}"), 0o600)


@on("etcd-ca-confused-with-cluster-ca", "external-etcd-1.36", "issuer-mismatch")
def overwritten_ext(t: Copy) -> None:
    t.write(f"{PKI}/etcd/ca.crt", t.read(f"{PKI}/ca.crt"))


@on(
    "etcd-ca-confused-with-cluster-ca",
    "lab-one-door-cp2-1.37 ha-dns-cp1-1.36",
    "issuer-mismatch",
    "issuer-mismatch,endpoint-is-one-node",
)
def with_log3(t: Copy) -> None:
    t.write(f"{PKI}/etcd/ca.crt", t.read(f"{PKI}/ca.crt"))
    t.says(
        "etcd",
        line(
            "warn",
            "rejected connection on client endpoint",
            caller="embed/config_logging.go:188",
            **{
                "remote-addr": "127.0.0.1:40120",
                "server-name": "",
                "error": "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            },
        ),
    )


@on("etcd-ca-confused-with-cluster-ca trap", "single-1.37", "")
def one_shared_ca(t: Copy) -> None:
    for e in ("crt", "key"):
        t.write(f"{PKI}/etcd/ca.{e}", t.read(f"{PKI}/ca.{e}"), 0o600)
    for p in ("etcd/server", "etcd/peer", "etcd/healthcheck-client", "apiserver-etcd-client"):
        reissue(t, p, authority=t.authorities["ca"])


@on("cert-key-mismatch", "single-1.37 single-1.34 external-etcd-1.36", "key-pair-mismatch")
def other_key(t: Copy) -> None:
    from manifests.pki.issuing import issue_authority, new_key

    t.write(PKI + "/apiserver.key", issue_authority("x", BORN, new_key("ECDSA-P256")).key_pem, 0o600)


@on("cert-key-mismatch", "ha-vip-cp1-1.37 ha-dns-cp1-1.36 lab-live-1.37", "key-pair-mismatch")
def swapped(t: Copy) -> None:
    t.write(PKI + "/etcd/server.key", t.read(PKI + "/etcd/peer.key"), 0o600)


@on("cert-key-mismatch", "single-1.36 dualstack-1.37", "key-pair-mismatch")
def in_kubeconfig(t: Copy) -> None:
    k = base64.b64encode(t.read(PKI + "/apiserver-kubelet-client.key").encode()).decode()
    t.sub("/etc/kubernetes/controller-manager.conf", r"client-key-data: \S+", "client-key-data: " + k)


@on("cert-key-mismatch", "single-1.37", "key-pair-mismatch")
def with_log4(t: Copy) -> None:
    t.write(PKI + "/apiserver-etcd-client.key", t.read(PKI + "/apiserver.key"), 0o600)
    t.says(
        "kube-apiserver",
        "F1214 22:50:00.000000       1 instance.go:226] Error creating leases: error creating storage factory: tls: private key does not match public key",
    )


@on("cert-key-mismatch", "single-1.37", "key-pair-mismatch")
def front_proxy(t: Copy) -> None:
    t.write(PKI + "/front-proxy-client.key", t.read(PKI + "/apiserver.key"), 0o600)


@on("cert-key-mismatch", "ha-vip-cp2-1.37", "key-pair-mismatch")
def peer(t: Copy) -> None:
    t.write(PKI + "/etcd/peer.key", t.read(PKI + "/etcd/server.key"), 0o600)


@on("ca-bundle-in-signing-cert", "single-1.37 ha-vip-cp1-1.37 external-etcd-1.36", "ca-bundle-as-signing-cert")
def bundle(t: Copy) -> None:
    from manifests.pki.issuing import issue_authority, new_key

    t.append(PKI + "/ca.crt", issue_authority("kubernetes", BORN, new_key("ECDSA-P256")).certificate_pem.decode())


@on("ca-bundle-in-signing-cert", "single-1.34 lab-live-1.37", "ca-bundle-as-signing-cert")
def bundle_front(t: Copy) -> None:
    from manifests.pki.issuing import issue_authority, new_key

    t.write(
        PKI + "/ca.crt",
        issue_authority("kubernetes", BORN, new_key("ECDSA-P256")).certificate_pem.decode() + t.read(PKI + "/ca.crt"),
    )


@on("ca-rotated-kubeconfigs-old-ca", "single-1.37 external-etcd-1.36", "kubeconfig-ca-stale")
def rotated_all(t: Copy) -> None:
    new = new_authority(t, "ca")
    for p in ("apiserver", "apiserver-kubelet-client"):
        reissue(t, p, authority=new)
    for c in ("admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf"):
        if t.place("/etc/kubernetes/" + c).exists():
            edit_kubeconfig(
                t,
                "/etc/kubernetes/" + c,
                issued=client(t, "admin.conf" if c == "super-admin.conf" else c, BORN, authority=new),
            )
    rotate_kubelet(t, client(t, "kubelet.conf", BORN, authority=new))


@on("ca-rotated-kubeconfigs-old-ca", "single-1.34 single-1.36 lab-live-1.37", "kubeconfig-ca-stale")
def only_conf_data(t: Copy) -> None:
    from manifests.pki.issuing import issue_authority, new_key

    old = issue_authority("kubernetes", BORN, new_key("ECDSA-P256")).certificate_pem
    for c in ALL:
        edit_kubeconfig(t, "/etc/kubernetes/" + c, ca=old)


@on("ca-rotated-kubeconfigs-old-ca", "ha-dns-cp1-1.36 ha-vip-cp1-1.37", "kubeconfig-ca-stale")
def kubelet_only(t: Copy) -> None:
    from manifests.pki.issuing import issue_authority, new_key

    edit_kubeconfig(
        t, "/etc/kubernetes/kubelet.conf", ca=issue_authority("kubernetes", BORN, new_key("ECDSA-P256")).certificate_pem
    )


@on("ca-key-absent-external-ca", "single-1.37 single-1.34 external-etcd-1.36 lab-live-1.37", "", "podcidr-duplicate")
def no_key(t: Copy) -> None:
    t.remove(PKI + "/ca.key")


@on("ca-key-absent-external-ca", "ha-vip-cp1-1.37", "")
def no_keys(t: Copy) -> None:
    for k in ("ca", "etcd/ca", "front-proxy-ca"):
        t.remove(f"{PKI}/{k}.key")
