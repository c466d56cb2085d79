"""Files of an earlier cluster are in the way: kubeadm refuses to write over them.

Manifests, kubelet.conf and etcd's data of a cluster that this host was in. `kubeadm reset` takes them away; etcd's data
may be the last copy of a cluster, so look at it first: `drtool status /var/lib/etcd/member/snap/db`.

Fix: `kubeadm reset`, after a look at the data. On a node that has joined this does not apply.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import PROGRAMS, Node

SEVERITY = Severity.ERROR
KUBEADM = (
    *(f"FileAvailable--etc-kubernetes-manifests-{program}.yaml" for program in PROGRAMS),
    "DirAvailable--var-lib-etcd",
)


def find(node: Node) -> Iterator[Finding]:
    if node.components and node.kubeconfigs:
        raise NotApplicable("this host has joined a cluster")
    for entry in node.manifests:
        yield Finding(f"{entry.path} is left from an earlier cluster", (Evidence(entry.path),))
    for path in ("/etc/kubernetes/kubelet.conf", "/etc/kubernetes/admin.conf"):
        if node.entry(path).kind != "absent":
            yield Finding(f"{path} is left from an earlier cluster", (Evidence(path),), Severity.WARNING)
    if node.entry("/var/lib/etcd/member").kind != "absent":
        yield Finding("/var/lib/etcd holds data of an earlier cluster", (Evidence("/var/lib/etcd/member"),))
