"""Static Pod manifests and kubeconfigs edited by hand."""

from __future__ import annotations

import base64
import re

from tests.incidents.trials.changes import (
    API,
    ETCD,
    KCM,
    SCH,
    STACKED,
    proxy,
)
from tests.incidents.trials.trial import MANIFESTS, Copy, Trials

TRIALS = Trials()
on = TRIALS.on


@on("manifest-backup-in-manifests-dir", STACKED + " external-etcd-1.36 lab-live-1.37", "duplicate-static-pod")
def same_copy(t: Copy) -> None:
    t.write(MANIFESTS + "/kube-apiserver.yaml.bak", t.read(MANIFESTS + "/kube-apiserver.yaml"), 0o600)


@on("manifest-backup-in-manifests-dir", "single-1.34 dualstack-1.37", "duplicate-static-pod")
def old_flags_copy(t: Copy) -> None:
    t.write(
        MANIFESTS + "/kube-apiserver.yaml-bak",
        t.read(MANIFESTS + "/kube-apiserver.yaml").replace(
            "    - --secure-port=6443\n", "    - --secure-port=6444\n    - --insecure-port=0\n"
        ),
        0o600,
    )


@on("manifest-backup-in-manifests-dir", "single-1.37", "duplicate-static-pod")
def etcd_backup(t: Copy) -> None:
    t.write(MANIFESTS + "/etcd.backup", t.read(MANIFESTS + "/etcd.yaml"), 0o600)


@on("manifest-backup-in-manifests-dir trap", "single-1.37 ha-vip-cp1-1.37", "")
def dot_and_subdir(t: Copy) -> None:
    t.write(MANIFESTS + "/.kube-apiserver.yaml.swp", b"b0VIM 9.0\0\0" + b"\xff\x00" * 40)
    t.write(MANIFESTS + "/.old.yaml", t.read(MANIFESTS + "/kube-apiserver.yaml"))
    t.write(MANIFESTS + "/old/kube-apiserver.yaml", t.read(MANIFESTS + "/kube-apiserver.yaml"))
    t.write("/etc/kubernetes/manifests-backup/etcd.yaml", t.read(MANIFESTS + "/etcd.yaml"))


@on("non-pod-yaml-in-manifests-dir", "single-1.37 ha-dns-cp1-1.36", "")
def _(t: Copy) -> None:
    t.write(MANIFESTS + "/audit-policy.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n")
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 file.go:187] "Could not process manifest file" err="/etc/kubernetes/manifests/audit-policy.yaml: couldn\'t parse as pod(no kind \\"Policy\\" is registered for version \\"audit.k8s.io/v1\\" in scheme \\"pkg/api/legacyscheme/scheme.go:30\\"), please check config file" path="/etc/kubernetes/manifests/audit-policy.yaml"',
    )


@on("scheduler-flag-address-removed-1.24", STACKED + " external-etcd-1.36 lab-live-1.37", "flag-unknown-or-removed")
def address(t: Copy) -> None:
    t.flag("kube-scheduler", "address", "127.0.0.1")


@on("scheduler-flag-address-removed-1.24", "single-1.34 dualstack-1.37", "flag-unknown-or-removed")
def port_zero(t: Copy) -> None:
    t.flag("kube-scheduler", "port", "0")
    t.says("kube-scheduler", "Error: unknown flag: --port")


@on(
    "apiserver-service-account-issuer-required-1.20",
    "single-1.34 single-1.37 external-etcd-1.36",
    "sa-issuer-changed",
    "flag-unknown-or-removed",
)
def both(t: Copy) -> None:
    for f in ("service-account-issuer", "service-account-signing-key-file"):
        t.flag("kube-apiserver", f, None)


@on(
    "apiserver-service-account-issuer-required-1.20",
    "single-1.36 ha-vip-cp1-1.37",
    "sa-issuer-changed",
    "flag-unknown-or-removed",
)
def issuer_only(t: Copy) -> None:
    t.flag("kube-apiserver", "service-account-issuer", None)
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 run.go:72] "command failed" err="[service-account-issuer is a required flag, --service-account-signing-key-file and --service-account-issuer are required flags]"',
    )


@on("apiserver-service-account-issuer-required-1.20", "single-1.36", "sa-issuer-changed", "flag-unknown-or-removed")
def signing_only(t: Copy) -> None:
    t.flag("kube-apiserver", "service-account-signing-key-file", None)


@on("service-account-issuer-changed", "single-1.37 lab-live-1.37 ha-dns-cp1-1.36", "sa-issuer-changed")
def with_log3(t: Copy) -> None:
    t.flag("kube-apiserver", "service-account-issuer", "https://oidc.example.org")
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 authentication.go:73] "Unable to authenticate the request" err="[invalid bearer token, service account token has unexpected issuer \\"https://kubernetes.default.svc.cluster.local\\"]"',
    )


@on("service-account-issuer-changed", "single-1.34 ha-vip-cp1-1.37", "sa-issuer-changed")
def with_log4(t: Copy) -> None:
    t.flag("kube-apiserver", "service-account-issuer", "https://k8s.example.org")
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 authentication.go:63] "Unable to authenticate the request" err="[invalid bearer token, square/go-jose/jwt: validation failed, invalid issuer claim (iss)]"',
    )


@on("service-account-issuer-changed", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "sa-issuer-changed")
def nodes_differ(a: Copy, b: Copy) -> None:
    b.flag("kube-apiserver", "service-account-issuer", "https://oidc.example.org")


@on("service-account-issuer-changed", "single-1.37 external-etcd-1.36", "sa-issuer-changed")
def token_on_disk(t: Copy) -> None:
    t.flag("kube-apiserver", "service-account-issuer", "https://oidc.example.org")
    tok = ".".join(
        base64.urlsafe_b64encode(x).decode().rstrip("=")
        for x in (
            b'{"alg":"RS256","kid":"a"}',
            b'{"iss":"https://kubernetes.default.svc.cluster.local","sub":"system:serviceaccount:kube-system:kube-proxy","exp":1828000000,"iat":1796500000}',
            b"sig",
        )
    )
    t.write(
        "/var/lib/kubelet/pods/62892578-142d-41c8-bcb8-38630db037a8/volumes/kubernetes.io~projected/kube-api-access-abcde/token",
        tok,
        0o600,
    )


@on("service-account-issuer-changed trap", "single-1.37", "")
def twice(t: Copy) -> None:
    t.sub(
        API,
        r"( *)- --service-account-issuer=(\S+)\n",
        r"\1- --service-account-issuer=https://oidc.example.org\n\1- --service-account-issuer=\2\n",
    )


@on("psp-blocks-mirror-pod-upgrade-timeout", "single-1.34 single-1.36", "")
def _(t: Copy) -> None:
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 kubelet.go:1711] "Failed creating a mirror pod for" err="pods \\"kube-apiserver-cp-1\\" is forbidden: PodSecurityPolicy: unable to admit pod: [pod.metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Forbidden: seccomp may not be set]" pod="kube-system/kube-apiserver-cp-1"',
    )


@on(
    "apiserver-anonymous-auth-off-breaks-probe",
    STACKED + " external-etcd-1.36 lab-live-1.37 dualstack-1.37",
    "probe-unauthorized",
)
def flag(t: Copy) -> None:
    t.flag("kube-apiserver", "anonymous-auth", "false")


@on("apiserver-anonymous-auth-off-breaks-probe", "single-1.34", "probe-unauthorized")
def with_kubelet(t: Copy) -> None:
    t.flag("kube-apiserver", "anonymous-auth", "false")
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 prober.go:107] "Probe failed" probeType="Liveness" pod="kube-system/kube-apiserver-cp-1" containerName="kube-apiserver" probeResult="failure" output="HTTP probe failed with statuscode: 401"',
        'I1214 22:50:00.000000     812 kuberuntime_container.go:808] "Killing container with a grace period" pod="kube-system/kube-apiserver-cp-1" containerName="kube-apiserver" gracePeriod=30',
    )


@on("manifest-edit-vim-temp-files-old-kubelet", "single-1.34 single-1.37", "duplicate-static-pod")
def tilde(t: Copy) -> None:
    t.write(MANIFESTS + "/kube-apiserver.yaml~", t.read(API), 0o600)
    t.write(MANIFESTS + "/4913", "")


@on("manifest-edit-vim-temp-files-old-kubelet", "single-1.34 single-1.37", "", "editor-leftovers")
def only_4913(t: Copy) -> None:
    t.write(MANIFESTS + "/4913", "")
    t.write(MANIFESTS + "/.kube-apiserver.yaml.swp", b"b0VIM 8.2")


@on("static-pod-not-restarted-after-edit-1.22", "single-1.34 single-1.37", "")
def _(t: Copy) -> None:
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 kubelet.go:2061] "SyncLoop ADD" source="file" pods=[kube-system/kube-apiserver-cp-1]',
        'I1214 22:50:01.000000     812 kubelet.go:2068] "SyncLoop REMOVE" source="file" pods=[kube-system/kube-apiserver-cp-1]',
    )


@on("static-pod-admission-outofcpu", "single-1.34 ha-vip-cp1-1.37 external-etcd-1.36", "requests-exceed-node")
def cpu(t: Copy) -> None:
    t.replace(API, "cpu: 250m", 'cpu: "6"')


@on("static-pod-admission-outofcpu", "single-1.37 ha-dns-cp1-1.36", "requests-exceed-node")
def memory(t: Copy) -> None:
    t.replace(API, "cpu: 250m", "cpu: 250m\n        memory: 16Gi")


@on("static-pod-admission-outofcpu", "single-1.36", "requests-exceed-node")
def reserved(t: Copy) -> None:
    t.append("/var/lib/kubelet/config.yaml", 'kubeReserved:\n  cpu: "2"\nsystemReserved:\n  cpu: 1700m\n')
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 kubelet.go:2375] "Pod admission denied" podUID="x" pod="kube-system/kube-apiserver-cp-1" reason="UnexpectedAdmissionError" message="Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 250), ]"',
    )


@on("static-pod-admission-outofcpu", "single-1.37 lab-live-1.37", "requests-exceed-node")
def vm_shrunk(t: Copy) -> None:
    t.write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: cpu\n\n")
    t.replace(API, "cpu: 250m", "cpu: 900m")
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 kubelet.go:2375] "Pod admission denied" podUID="x" pod="kube-system/kube-apiserver-cp-1" reason="OutOfcpu" message="Node didn\'t have enough resource: cpu, requested: 250, used: 900, capacity: 1000"',
    )


@on(
    "kcm-scheduler-kubeconfig-old-endpoint",
    STACKED + " single-1.34 external-etcd-1.36 lab-live-1.37 dualstack-1.37",
    "kubeconfig-server-unknown-address",
)
def ip(t: Copy) -> None:
    for c in ("controller-manager.conf", "scheduler.conf"):
        t.sub("/etc/kubernetes/" + c, r"server: \S+", "server: https://192.0.2.77:6443")


@on("kcm-scheduler-kubeconfig-old-endpoint", "ha-vip-cp1-1.37 ha-dns-cp1-1.36", "kubeconfig-server-unknown-address")
def old_name(t: Copy) -> None:
    for c in ("controller-manager.conf", "scheduler.conf"):
        t.sub("/etc/kubernetes/" + c, r"server: \S+", "server: https://old-lb.example.org:6443")
    t.says(
        "kube-scheduler",
        'E1214 22:50:00.000000       1 leaderelection.go:448] "Error retrieving lease lock" err="Get \\"https://old-lb.example.org:6443/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler?timeout=5s\\": dial tcp: lookup old-lb.example.org: no such host"',
    )


@on("static-pods-carry-http-proxy", STACKED + " single-1.34 external-etcd-1.36", "no-proxy-incomplete")
def missing(t: Copy) -> None:
    proxy(t)


@on("static-pods-carry-http-proxy", "single-1.37 lab-live-1.37", "no-proxy-incomplete")
def pods_missing(t: Copy) -> None:
    proxy(t, f"127.0.0.1,localhost,{t.address}")


@on("static-pods-carry-http-proxy", "single-1.36", "no-proxy-incomplete")
def none(t: Copy) -> None:
    t.sub(
        KCM,
        r"\n    image: ",
        "\n    env:\n    - name: https_proxy\n      value: http://proxy.example.org:3128\n    image: ",
    )


@on("static-pods-carry-http-proxy healthy", "single-1.37 ha-vip-cp1-1.37 ha-dns-cp1-1.36 external-etcd-1.36", "")
def proper(t: Copy) -> None:
    proxy(
        t,
        "127.0.0.1,localhost,192.0.2.0/24,198.51.100.0/24,10.96.0.0/12,10.244.0.0/16,.svc,.cluster.local,k8s.example.org",
    )


@on("static-pod-image-not-pullable", "single-1.37 ha-vip-cp1-1.37", "image-not-pullable")
def etcd_registry(t: Copy) -> None:
    t.sub(ETCD, r"image: registry.k8s.io/", "image: registry.example.org/k8s/")
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 log.go:32] "PullImage from image service failed" err="rpc error: code = NotFound desc = failed to pull and unpack image \\"registry.example.org/k8s/etcd:3.7.0-0\\": failed to resolve reference \\"registry.example.org/k8s/etcd:3.7.0-0\\": registry.example.org/k8s/etcd:3.7.0-0: not found" image="registry.example.org/k8s/etcd:3.7.0-0"',
        'E1214 22:50:00.000000     812 pod_workers.go:1301] "Error syncing pod, skipping" err="failed to \\"StartContainer\\" for \\"etcd\\" with ImagePullBackOff: \\"Back-off pulling image \\\\\\"registry.example.org/k8s/etcd:3.7.0-0\\\\\\"\\"" pod="kube-system/etcd-cp-1"',
    )


@on("static-pod-image-not-pullable", "single-1.34 external-etcd-1.36", "image-not-pullable")
def tag(t: Copy) -> None:
    v = re.search(r"kube-scheduler:(\S+)", t.read(SCH))[1]
    nv = v[:-1] + "9"
    t.replace(SCH, v, nv)
    t.unit(
        "kubelet",
        f'E1214 22:50:00.000000     812 kuberuntime_image.go:42] "Failed to pull image" err="rpc error: code = NotFound desc = failed to pull and unpack image \\"registry.k8s.io/kube-scheduler:{nv}\\": failed to resolve reference \\"registry.k8s.io/kube-scheduler:{nv}\\": registry.k8s.io/kube-scheduler:{nv}: not found" image="registry.k8s.io/kube-scheduler:{nv}"',
    )


@on("static-pod-image-not-pullable trap", "single-1.37 ha-dns-cp1-1.36", "")
def mirror(t: Copy) -> None:
    for m in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        t.replace(f"{MANIFESTS}/{m}.yaml", "registry.k8s.io/", "mirror.example.org/k8s/")
