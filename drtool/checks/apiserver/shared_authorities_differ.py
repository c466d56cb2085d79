"""Control planes of one cluster must share the cluster's CA and etcd's; the front proxy's is front-proxy-pair's matter.

Leaf certificates belong to one node, CAs to all. A node that was initialised instead of joined, or whose pki was
restored from another cluster's backup, has CAs of its own: the others refuse its clients (`certificate signed by
unknown authority`) and its etcd cannot join. Needs several nodes.

Fix: copy the CA pairs (and sa.key, sa.pub) from a node that is right, then re-issue the leaf certificates of this
one.
"""

from collections import Counter
from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import PKI, Node

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "issuer-mismatch",
    "kubeconfig-ca-stale",
    "front-proxy-pair",
    "sa-pair-broken",
    "etcd-cluster-id-mismatch",
    "etcd-inconsistent-members",
    "etcd-membership-stale",
    "front-proxy-configmap-stale",
)
FILES = {"ca.crt": "the cluster's CA", "etcd/ca.crt": "etcd's CA"}


def find(case: Case) -> Iterator[Finding]:
    others = [node for node in case.others if node.layout.control_plane]
    if not others or not case.node.layout.control_plane:
        raise NotApplicable("no other control plane is judged with this node")
    for name, what in FILES.items():
        path = f"{PKI}/{name}"
        own = _prints(case.node, path)
        theirs = [(node, prints) for node in others if (prints := _prints(node, path))]
        counts = Counter([own, *(prints for _, prints in theirs)])
        for node, prints in theirs:
            if own and not own & prints and counts[own] <= counts[prints]:
                yield Finding(
                    f"This node has another certificate for {what} than {node.name}",
                    (Evidence(path, None, _short(own)), Evidence(path, None, f"{node.name}: {_short(prints)}")),
                )
                break


def _prints(node: Node, path: str) -> frozenset[str]:
    """Fingerprints of a file's certificates; none where it is not there (external etcd)."""
    try:
        return frozenset(certificate.fingerprint for certificate in node.pem(path).certificates)
    except EvidenceMissing:
        return frozenset()


def _short(prints: frozenset[str]) -> str:
    return "sha256 " + ", ".join(sorted(each[:16] for each in prints))
