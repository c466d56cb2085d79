"""The kubeconfig that kube-vip mounts is not on this node.

Nodes that joined have no super-admin.conf; a kube-vip.yaml copied from the first one names it all the same. The kubelet
then refuses the mount, or an empty file or directory is made in its place, and nobody holds the virtual address.

Fix: mount /etc/kubernetes/admin.conf in kube-vip.yaml.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.kube_vip import the_kube_vip
from manifests.node import Node

SEVERITY = Severity.CRITICAL


def find(node: Node) -> Iterator[Finding]:
    mounted = the_kube_vip(node).kubeconfig
    if mounted is None:
        raise NotApplicable("kube-vip mounts no kubeconfig")
    path, evidence = mounted
    entry = node.entry(path)
    if path.rpartition("/")[0] not in node.capture.listings:
        raise EvidenceMissing(f"{path.rpartition('/')[0]} is not in this tree")
    empty = entry.kind == "file" and entry.data is not None and not entry.data.strip()
    if entry.kind in {"absent", "dangling", "directory"} or empty:
        what = "is not there" if entry.kind in {"absent", "dangling"} else f"is {'empty' if empty else 'a directory'}"
        yield Finding(f"kube-vip mounts {path}, which {what}", (evidence, Evidence(path)))
