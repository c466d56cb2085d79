"""containerd must be able to open its own state below /var/lib/containerd.

After a power cut its bbolt file meta.db may be torn: containerd panics (`invalid freelist page`, a fault in bbolt),
or runs without any plugin that needs it (`failed to load plugin io.containerd.metadata.v1.bolt error="invalid
database"`).

Fix: stop kubelet and containerd, move /var/lib/containerd aside, start both: images are pulled again and the static
Pods come back. etcd's data is not in it.
"""

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.host.containerd import in_use, recent_journal
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "runtime-not-running",
    "kubelet-not-running",
    "component-not-ready",
    "container-exited",
    "sandbox-image-unavailable",
)
BROKEN = re.compile(
    r"panic: .*(?:freelist|page|bolt|bucket|free: invalid)|unexpected fault address|go\.etcd\.io/bbolt\.\("
    r"|failed to load plugin io\.containerd\.metadata\.v1\.bolt|meta\.db: .*(?:invalid|input/output|corrupt)"
)


def find(node: Node) -> Iterator[Finding]:
    in_use(node)
    if not node.journal("containerd"):
        raise EvidenceMissing("no journal of containerd in this tree")
    lines = [line for line in recent_journal(node) if BROKEN.search(line.text)]
    if lines:
        yield Finding("containerd cannot open its own state: meta.db is damaged", (lines[0].evidence,))
