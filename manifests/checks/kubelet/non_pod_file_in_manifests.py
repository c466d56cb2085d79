"""Only Pod manifests belong into the static Pod directory.

The kubelet tries to read every file there as a Pod and complains about each that is none: an audit policy, a
kubeconfig, notes. That is noise, unless the file was meant to be the manifest.

Fix: move the file elsewhere and mount it into the Pod that needs it.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.layout import Layout
from manifests.node import PROGRAMS, Node

SEVERITY = Severity.WARNING


def find(node: Node) -> Iterator[Finding]:
    for document in node.other_manifests:
        kind = document.get("kind") or "file without a kind"
        at = document.evidence("kind") if document.get("kind") else Evidence(document.path)
        yield Finding(f"{document.path} is a {kind}, not a Pod; the kubelet skips it", (at,))
    manifests = {f"{program}.{ending}" for program in PROGRAMS for ending in ("yaml", "yml", "json")}
    for entry, problem in node.unparsable_manifests:
        name = entry.path.rpartition("/")[2]
        if name not in manifests and node.layout is not Layout.NOT_KUBEADM:
            yield Finding(f"{entry.path} is no Pod: {problem.problem}", (Evidence(entry.path, problem.line),))
