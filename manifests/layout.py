"""What kind of node this is, decided before anything is judged."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from manifests.kubeconfig import split_url
from manifests.network.addresses import address_of

if TYPE_CHECKING:
    from manifests.node import Node


class Layout(StrEnum):
    STACKED = "kubeadm-stacked"
    EXTERNAL_ETCD = "kubeadm-external-etcd"
    ETCD_ONLY = "kubeadm-etcd-only"
    WORKER = "kubeadm-worker"
    NOT_KUBEADM = "not-kubeadm"
    EMPTY = "empty"

    @property
    def programs(self) -> tuple[str, ...]:
        """The static Pods that such a node runs."""
        control_plane = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
        return {
            Layout.STACKED: ("etcd", *control_plane),
            Layout.EXTERNAL_ETCD: control_plane,
            Layout.ETCD_ONLY: ("etcd",),
        }.get(self, ())

    @property
    def control_plane(self) -> bool:
        return "kube-apiserver" in self.programs


DISTRIBUTIONS = {
    "/var/lib/rancher/rke2": "RKE2",
    "/etc/rancher/rke2": "RKE2",
    "/var/lib/rancher/k3s": "k3s",
    "/etc/rancher/k3s": "k3s",
    "/var/lib/k0s": "k0s",
    "/etc/k0s": "k0s",
    "/var/snap/microk8s": "MicroK8s",
    "/var/lib/minikube": "minikube",
    "/system/state": "Talos",
    "/usr/local/etc/talos": "Talos",
    "/etc/kubernetes/static-pod-resources": "OpenShift",
    "/etc/etcd.env": "kubespray",
    "/etc/ssl/etcd/ssl": "kubespray",
    "/etc/kubernetes/ssl": "kubespray",
}


def distribution(node: Node) -> str:
    """The distribution that a tree belongs to when it is not kubeadm's own layout, "" where it is.

    Its traces count only where kubeadm's own manifests and PKI are not there: a leftover directory of k3s must not hide
    a kubeadm control plane.
    """
    if _kubeadm_pki(node) and any(_is_there(node, f"/etc/kubernetes/manifests/{name}.yaml") for name in _MANIFESTS):
        return ""
    return next((name for path, name in DISTRIBUTIONS.items() if _is_there(node, path)), "")


_MANIFESTS = ("kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler")


def detect(node: Node) -> Layout:
    """From what is there; a missing manifest of a control plane does not make it another kind of node."""
    if distribution(node):
        return Layout.NOT_KUBEADM
    runs = node.components
    pki = node.capture.listings.get("/etc/kubernetes/pki", ())
    etcd_pki = node.capture.listings.get("/etc/kubernetes/pki/etcd", ())
    control_plane = (
        any(program in runs for program in _MANIFESTS if program != "etcd")
        or "apiserver.crt" in pki
        or any(_is_there(node, f"/etc/kubernetes/{name}") for name in ("controller-manager.conf", "scheduler.conf"))
    )
    if control_plane:
        return Layout.EXTERNAL_ETCD if _external(node, etcd_pki) else Layout.STACKED
    if "etcd" in runs or "server.crt" in etcd_pki:
        return Layout.STACKED if _is_there(node, "/etc/kubernetes/admin.conf") else Layout.ETCD_ONLY
    if _is_there(node, "/etc/kubernetes/admin.conf"):
        return Layout.STACKED
    if _is_there(node, "/etc/kubernetes/kubelet.conf") or _is_there(node, "/etc/kubernetes/bootstrap-kubelet.conf"):
        return Layout.WORKER
    return Layout.EMPTY


def _external(node: Node, etcd_pki: tuple[str, ...]) -> bool:
    if "etcd" in node.components or "server.crt" in etcd_pki or "peer.crt" in etcd_pki:
        return False
    if _is_there(node, "/var/lib/etcd/member") or _is_there(node, "/etc/kubernetes/manifests/etcd.yaml"):
        return False
    apiserver = node.components.get("kube-apiserver")
    if apiserver is None or not apiserver.has("etcd-servers"):
        return False
    hosts = [split_url(url)[0] for url in apiserver.names("etcd-servers")]
    addresses = [address_of(host) for host in hosts]
    return not any((a is not None and a.is_loopback) or h == "localhost" for a, h in zip(addresses, hosts, strict=True))


def _kubeadm_pki(node: Node) -> bool:
    return "ca.crt" in node.capture.listings.get("/etc/kubernetes/pki", ())


def _is_there(node: Node, path: str) -> bool:
    return node.entry(path).kind not in {"absent", "unreadable"}
