"""Which inputs this tree lacks, so that nobody takes silence for health.

A mounted disk has no /proc: the host's addresses, swap and listeners are unknown, and what needs them says so. A copied
tree often lacks /run, logs and versions. An absent file in a partial copy is not proof that the host lacks it.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.layout import Layout
from manifests.node import Node

SEVERITY = Severity.INFO
INPUTS = {
    "/proc/net/fib_trie": "the host's addresses",
    "/etc/kubernetes/manifests": "the static Pods",
    "/var/lib/kubelet/config.yaml": "the kubelet's configuration",
    "/etc/hosts": "the host's own names",
}


def find(node: Node) -> Iterator[Finding]:
    if node.layout in {Layout.EMPTY, Layout.NOT_KUBEADM}:
        return
    gaps = {path: what for path, what in INPUTS.items() if node.entry(path).error}
    if gaps:
        yield Finding(
            f"This tree does not show {', '.join(gaps.values())}: what needs them is unknown, not passed",
            tuple(Evidence(path, None, node.entry(path).error or "absent") for path in gaps),
        )
