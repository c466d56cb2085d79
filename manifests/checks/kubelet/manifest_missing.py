"""Every program of a control plane needs its manifest in the kubelet's static Pod directory.

Without it the kubelet stops the program, and nothing starts it again. Manifests are moved away to restart a program and
then forgotten, or lost by an upgrade that was interrupted.

Fix: move the manifest back (from where it was parked, or from /etc/kubernetes/tmp/kubeadm-backup-manifests-*), or write
it anew: `kubeadm init phase control-plane all` and `kubeadm init phase etcd local`.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "etcd-servers-vs-etcd",
    "component-not-ready",
    "container-exited",
    "etcd-quorum-impossible",
    "upgrade-leftovers",
)


def find(node: Node) -> Iterator[Finding]:
    if not node.layout.programs:
        raise NotApplicable(f"a {node.layout} node runs no static Pods of its own")
    directory = node.manifests_directory
    if node.entry(directory).kind in {"absent", "unreadable"}:
        raise EvidenceMissing(f"{directory} is not in this tree")
    if error := node.entry(directory).error:
        raise EvidenceMissing(f"{directory}: {error}")
    if (
        "/etc/kubernetes/manifests" in node.capture.listings
        and directory != "/etc/kubernetes/manifests"
        and not node.pods
    ):
        raise EvidenceMissing(f"the kubelet reads {directory}, and kubeadm's manifests lie elsewhere")
    present = {entry.path.rpartition("/")[2].partition(".")[0] for entry in node.manifests}
    for program in node.layout.programs:
        if program not in node.components and program not in present:
            parked = _parked(node, program)
            where = f"; a copy lies at {parked[0].path}" if parked else ""
            yield Finding(
                f"The manifest of {program} is not in {directory}{where}",
                (Evidence(directory, None, f"no {program}.yaml"), *parked),
            )


def _parked(node: Node, program: str) -> tuple[Evidence, ...]:
    """Copies in sibling directories and in kubeadm's own backups."""
    pattern = rf"/etc/kubernetes/[^/]+(/[^/]+)?/{program}\.ya?ml[^/]*|/root/{program}\.ya?ml"
    return tuple(Evidence(entry.path) for entry in node.capture.matching(pattern) if "/manifests/" not in entry.path)[
        :3
    ]
