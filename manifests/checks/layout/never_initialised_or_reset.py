"""Manifests, PKI and the kubelet's configuration are all gone: this node was reset, or never joined.

`kubeadm reset` on the wrong host, or one that was interrupted, leaves exactly this, often with etcd's data still in
place. A kubelet that restarts every few seconds before `kubeadm init` or `join` is expected and no fault of its own.

Fix: where /var/lib/etcd/member is still there, do not run `kubeadm init` over it. Put the PKI back first (the three CAs
and sa.key, from a backup or from another control plane), then the manifests: `drtool restore --node BACKUP`.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.layout import Layout
from manifests.node import Node

SEVERITY = Severity.ERROR
EXPLAINS = (
    "manifest-missing",
    "kubelet-config-missing",
    "kubelet-client-link",
    "pem-empty-or-garbage",
    "flag-file-not-mounted",
    "ca-key-missing",
    "cni-config-missing",
    "kubelet-not-running",
    "component-not-ready",
    "container-exited",
)
REMAINS = ("/var/lib/etcd/member", "/etc/kubernetes/admin.conf", "/etc/kubernetes/kubelet.conf")


def find(node: Node) -> Iterator[Finding]:
    if node.layout is Layout.NOT_KUBEADM:
        raise NotApplicable("not a kubeadm tree")
    listing = node.capture.listings
    if "/etc/kubernetes" not in listing and "/var/lib/kubelet" not in listing:
        return
    if (
        node.manifests
        or "ca.crt" in listing.get("/etc/kubernetes/pki", ())
        or _there(node, "/var/lib/kubelet/config.yaml")
    ):
        return
    remains = [path for path in REMAINS if _there(node, path)]
    missing = (
        Evidence("/etc/kubernetes/manifests", None, "no manifest in it"),
        Evidence("/etc/kubernetes/pki/ca.crt", None, "absent"),
        Evidence("/var/lib/kubelet/config.yaml", None, "absent"),
    )
    if remains:
        yield Finding(
            f"This node was reset or never finished joining: no manifests, no PKI, but {remains[0]} is still there",
            (*missing, *(Evidence(path, None, "still there") for path in remains)),
            fix=Fix("drtool restore --node BACKUP", "puts PKI, manifests and data back from a backup of this node"),
        )
    else:
        yield Finding("This node has not joined a cluster, or was reset", missing, severity=_bare(node))


def _bare(node: Node) -> Severity:
    """A host where kubeadm left its empty directories was a node; one with only the packages never was."""
    left = {"manifests", "pki"} & set(node.capture.listings.get("/etc/kubernetes", ()))
    return Severity.ERROR if left == {"manifests", "pki"} else Severity.INFO


def _there(node: Node, path: str) -> bool:
    return node.entry(path).kind != "absent"
