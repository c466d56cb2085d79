"""Programs that the kubelet, kube-proxy and kubeadm run must be installed.

losetup (block volumes), mount, cp; conntrack before 1.32. kubeadm looks for them in PATH.

Fix: install util-linux, mount and coreutils.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.ERROR
KUBEADM = ("FileExisting-losetup", "FileExisting-mount", "FileExisting-cp")
PROGRAMS = {"losetup": "util-linux", "mount": "mount", "cp": "coreutils"}
DIRECTORIES = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def find(node: Node) -> Iterator[Finding]:
    there = {
        name
        for name in PROGRAMS
        if any(node.entry(f"{directory}/{name}").kind not in {"absent", "unreadable"} for directory in DIRECTORIES)
    }
    if not there:
        raise EvidenceMissing("no program directory in this tree")
    for name in sorted(set(PROGRAMS) - there):
        title = f"{name} is not installed (package {PROGRAMS[name]})"
        yield Finding(title, (Evidence(f"/usr/bin/{name}", None, "absent"),))
