"""All members must be of one etcd cluster.

A member that was started as new, restored alone or forced into a cluster of its own has another cluster id; the others
answer `request cluster ID mismatch`, and it serves nothing, or worse, other data. Needs the log, or several nodes.

Fix: on the odd one out, move the data directory aside, remove and add the member, start it with
--initial-cluster-state=existing.
"""

from collections import Counter
from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import recent_log, said
from manifests.node import Node
from snapshots.facts import DataDirectory

SEVERITY = Severity.CRITICAL
EXPLAINS = ("etcd-membership-stale", "etcd-quorum-impossible", "etcd-inconsistent-members", "component-not-ready")
MISMATCH = r"cluster ID mismatch"
CA = "/etc/kubernetes/pki/etcd/ca.crt"


def find(case: Case) -> Iterator[Finding]:
    gap: EvidenceMissing | None = None
    try:
        line = said(recent_log(case.node), MISMATCH)
    except EvidenceMissing as missing:
        line, gap = None, missing
    if line is not None:
        yield Finding("etcd's members are of different clusters", (line.evidence, *_own(case)))
        return
    peers = [(node, stored) for node, stored in case.peers() if _same(case.node, node)]
    if not peers:
        if gap:
            raise gap
        return
    own = case.data.log.cluster_id
    ids = Counter(stored.log.cluster_id for _, stored in peers) + Counter([own])
    usual = ids.most_common(1)[0][0]
    for node, stored in peers:
        if stored.log.cluster_id != own and (own != usual or ids[own] == ids[stored.log.cluster_id]):
            yield Finding(
                f"etcd's cluster here is {own:x}, and {node.name}'s is {stored.log.cluster_id:x}",
                (_said(case.data), Evidence(stored.wal_path, None, f"{node.name}: cluster {stored.log.cluster_id:x}")),
            )
            return


def _own(case: Case) -> tuple[Evidence, ...]:
    try:
        return (_said(case.data),)
    except EvidenceMissing:
        return ()


def _said(data: DataDirectory) -> Evidence:
    return Evidence(data.wal_path, None, f"cluster {data.log.cluster_id:x}")


def _same(one: Node, other: Node) -> bool:
    """Whether two nodes are meant to be of one cluster: they share etcd's CA."""
    try:
        return one.certificate(CA).fingerprint == other.certificate(CA).fingerprint
    except EvidenceMissing:
        return True
