"""A private key, a kubeconfig or etcd's data can be read by everybody on the host.

Whoever reads admin.conf or a CA's key owns the cluster; etcd's files hold every Secret. kubeadm writes keys and
kubeconfigs with mode 0600 and the data directory with 0700. Reading by a group is how rootless control planes work, and
is not meant here.

Fix: `chmod 600` the files, `chmod 700` the data directory.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
OTHERS = 0o006
FILES = r"/etc/kubernetes/(pki/(.*/)?[^/]+\.key|[^/]+\.conf)|/var/lib/kubelet/pki/[^/]+\.key"


def find(node: Node) -> Iterator[Finding]:
    data = node.entry(_data_directory(node))
    kept = [entry for entry in node.capture.matching(FILES) if entry.kind in {"file", "link"}]
    kept += [data] if data.kind in {"directory", "link"} else []
    if not kept:
        raise EvidenceMissing("no key, kubeconfig or data directory in this tree")
    for entry in kept:
        if entry.mode & OTHERS:
            yield Finding(
                f"{entry.path} can be {_what(entry.mode)} by everybody",
                (Evidence(entry.path, None, f"mode {entry.mode:04o}, owner {entry.uid}:{entry.gid}"),),
                fix=Fix("drtool fix key-file-readable", "takes reading and writing away from everybody but the owner"),
            )


def _what(mode: int) -> str:
    return " and ".join(verb for bit, verb in ((0o4, "read"), (0o2, "written")) if mode & bit)


def _data_directory(node: Node) -> str:
    etcd = node.components.get("etcd")
    inside = etcd.value("data-dir", "/var/lib/etcd") if etcd else "/var/lib/etcd"
    return (etcd.container.host_path(inside) if etcd else None) or inside
