"""The cluster's objects, encryption at rest, Pod ranges."""

from __future__ import annotations

from tests.incidents.trials.changes import (
    K1,
    K2,
    encrypt,
)
from tests.incidents.trials.stored import (
    a_node,
    add_node,
    add_status,
    cm,
    node_cidr,
    objects,
)
from tests.incidents.trials.trial import MANIFESTS, PKI, Copy, Trials

TRIALS = Trials()
on = TRIALS.on


@on("encryption-config-differs-between-nodes", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "encryption-keys-vs-data")
def two_keys(a: Copy, b: Copy) -> None:
    encrypt(a)
    encrypt(b, K2)


@on("encryption-config-differs-between-nodes", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "encryption-keys-vs-data")
def flag_absent_on_one(a: Copy, b: Copy) -> None:
    encrypt(a)


@on("encryption-config-differs-between-nodes", "lab-live-1.37", "encryption-keys-vs-data")
def key_dropped(t: Copy) -> None:
    t.replace(PKI + "/encryption.yaml", "name: key1", "name: key2")


@on("encryption-config-differs-between-nodes", "lab-live-1.37", "encryption-keys-vs-data")
def key_dropped_other_secret(t: Copy) -> None:
    t.replace(
        PKI + "/encryption.yaml",
        "name: key1, secret: Fg5KHpLWVIyETK98qc+dOOXtKRoET0K3EYCvrims9Do=",
        "name: key2, secret: " + K1,
    )
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 cacher.go:450] cacher (secrets): unexpected ListAndWatch error: failed to list *core.Secret: unable to transform key "/registry/secrets/kube-system/x": no matching prefix found; reinitializing...',
    )


@on("encryption-config-differs-between-nodes", "lab-live-1.37", "encryption-keys-vs-data")
def flag_absent(t: Copy) -> None:
    t.flag("kube-apiserver", "encryption-provider-config", None)


@on("encryption-config-differs-between-nodes", "lab-live-1.37", "encryption-keys-vs-data")
def same_name_other_secret(t: Copy) -> None:
    t.replace(PKI + "/encryption.yaml", "Fg5KHpLWVIyETK98qc+dOOXtKRoET0K3EYCvrims9Do=", K1)
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 status.go:71] "Unhandled Error" err="apiserver received an error that is not an metav1.Status: storage.InternalError{Reason:\\"invalid padding on input\\"}"',
    )


@on("encryption-config-differs-between-nodes", "lab-live-1.37", "encryption-keys-vs-data")
def same_name_other_secret_quiet(t: Copy) -> None:
    t.replace(PKI + "/encryption.yaml", "Fg5KHpLWVIyETK98qc+dOOXtKRoET0K3EYCvrims9Do=", K1)


@on(
    "encryption-config-no-identity-provider",
    "single-1.34 single-1.37 ha-dns-cp1-1.36 ha-vip-cp1-1.37",
    "encryption-keys-vs-data",
)
def _(t: Copy) -> None:
    encrypt(t, tail="")


@on("encryption-config-no-identity-provider trap", "single-1.34 single-1.37", "")
def with_identity(t: Copy) -> None:
    encrypt(t)


@on("kubeadm-config-clusterstatus-stale", "single-1.34 ha-vip-cp1-1.37", "clusterstatus-stale")
def saved_yaml(t: Copy) -> None:
    t.write(
        "/kubeadm-config.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kubeadm-config\n  namespace: kube-system\ndata:\n  ClusterConfiguration: |\n    apiVersion: kubeadm.k8s.io/v1beta2\n    kind: ClusterConfiguration\n    kubernetesVersion: v1.21.14\n    networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/12}\n  ClusterStatus: |\n    apiEndpoints:\n      cp-1:\n        advertiseAddress: %s\n        bindPort: 6443\n      cp-9:\n        advertiseAddress: 192.0.2.119\n        bindPort: 6443\n    apiVersion: kubeadm.k8s.io/v1beta2\n    kind: ClusterStatus\n"
        % t.address,
    )
    for m in ("kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        t.sub(f"{MANIFESTS}/{m}.yaml", r"(image: \S+:)v1.\d+.\d+", r"\1v1.21.14")


@on("kubeadm-config-clusterstatus-stale", "single-1.34 ha-vip-cp1-1.37", "clusterstatus-stale")
def in_db(t: Copy) -> None:
    objects(t, "/registry/configmaps/kube-system/kubeadm-config", add_status)


@on("pod-cidr-not-assigned", "single-1.37 ha-vip-cp1-1.37 single-1.34 external-etcd-1.36", "podcidr-missing")
def log5(t: Copy) -> None:
    for f in ("allocate-node-cidrs", "cluster-cidr"):
        t.flag("kube-controller-manager", f, None)
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 pod_workers.go:1301] "Error syncing pod, skipping" err="failed to \\"CreatePodSandbox\\" for \\"coredns\\": plugin type=\\"flannel\\" failed (add): loadFlannelSubnetEnv failed: open /run/flannel/subnet.env: no such file or directory"',
    )
    t.write(
        "/etc/cni/net.d/10-flannel.conflist",
        '{"name":"cbr0","cniVersion":"0.3.1","plugins":[{"type":"flannel","delegate":{"hairpinMode":true,"isDefaultGateway":true}},{"type":"portmap","capabilities":{"portMappings":true}}]}',
    )
    t.remove("/etc/cni/net.d/10-lab.conflist")
    t.write("/opt/cni/bin/flannel", "\x7fELF", 0o755)


@on("pod-cidr-not-assigned", "single-1.36 ha-dns-cp1-1.36", "podcidr-missing")
def mask(t: Copy) -> None:
    t.flag("kube-controller-manager", "cluster-cidr", "10.244.0.0/24")
    t.flag("kube-controller-manager", "node-cidr-mask-size", "24")
    t.says(
        "kube-controller-manager",
        'E1214 22:50:00.000000       1 range_allocator.go:1] "Failed to allocate CIDR" err="failed to allocate cidr from cluster cidr at idx:0: CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range"',
    )


@on("duplicate-pod-cidr", "lab-live-1.37", "podcidr-duplicate")
def as_is(t: Copy) -> None:
    pass


@on("duplicate-pod-cidr", "single-1.37 ha-vip-cp1-1.37", "podcidr-duplicate")
def two_nodes(t: Copy) -> None:
    objects(t, a_node(t).decode(), node_cidr("10.244.0.0/24"))
    add_node(t, "worker-1", "10.244.0.0/24")


@on(
    "cluster-cidr-changed-kcm-crash",
    "lab-live-1.37",
    "podcidr-outside",
    "podcidr-outside,podcidr-duplicate",
    "podcidr-duplicate,podcidr-outside",
)
def flag(t: Copy) -> None:
    t.flag("kube-controller-manager", "cluster-cidr", "10.200.0.0/16")


@on("cluster-cidr-changed-kcm-crash", "single-1.37 single-1.34", "podcidr-outside")
def in_db(t: Copy) -> None:
    objects(t, a_node(t).decode(), node_cidr("10.32.0.0/24"))


@on("cluster-cidr-changed-kcm-crash", "single-1.36 ha-vip-cp1-1.37 external-etcd-1.36", "podcidr-outside")
def log6(t: Copy) -> None:
    t.flag("kube-controller-manager", "cluster-cidr", "10.200.0.0/16")
    t.says(
        "kube-controller-manager",
        'E1214 22:50:00.000000       1 controllermanager.go:1] "Error starting controller" err="failed to mark cidr[10.244.0.0/24] at idx [0] as occupied for node: cp-1: cidr 10.244.0.0/24 is out the range of cluster cidr 10.200.0.0/16" controller="node-ipam-controller"',
    )


@on("calico-ipam-after-etcd-restore", "single-1.37", "")
def _(t: Copy) -> None:
    t.append("/root/.bash_history", "etcdutl snapshot restore /backup/snap.db --data-dir /var/lib/etcd\n")


@on(
    "cluster-info-or-kube-proxy-cm-stale",
    "single-1.37 ha-vip-cp1-1.37 single-1.34",
    "cluster-info-stale",
    "kube-proxy-cm-stale",
    "cluster-info-stale,kube-proxy-cm-stale",
    "kube-proxy-cm-stale,cluster-info-stale",
)
def info(t: Copy) -> None:
    objects(
        t,
        "/registry/configmaps/kube-public/cluster-info",
        cm("kubeconfig", r"server: \S+", "server: https://192.0.2.77:6443"),
    )


@on(
    "cluster-info-or-kube-proxy-cm-stale",
    "single-1.36 ha-dns-cp1-1.36",
    "cluster-info-stale",
    "kube-proxy-cm-stale",
    "cluster-info-stale,kube-proxy-cm-stale",
)
def kube_proxy(t: Copy) -> None:
    objects(
        t,
        "/registry/configmaps/kube-system/kube-proxy",
        cm("kubeconfig.conf", r"server: \S+", "server: https://192.0.2.77:6443"),
    )
