"""Every member must hold the same data at the same revision.

Members restored from different snapshots, or hit by the corruption of 3.5.0 to 3.5.2, look healthy, and objects
change with the API server that is asked. etcd notices at start or by --corrupt-check-time: `found data inconsistency
with peers`, alarm CORRUPT. Newest revisions differ by a few on healthy members that are at work: only the same
revision is compared.

Fix: restore all members from one snapshot, or remove the wrong one, move its data aside and add it again.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import asked, recent_log, said

SEVERITY = Severity.CRITICAL
EXPLAINS = ("etcd-quorum-impossible", "container-exited", "component-not-ready")
FOUND = r"found data inconsistency with peers|data corruption|checkInitialHashKV failed|alarm:CORRUPT"


def find(case: Case) -> Iterator[Finding]:
    yield from _logged(case)
    yield from _answered(case)
    database = case.database
    for alarm in database.cluster.alarms:
        if alarm.kind == "CORRUPT":
            yield Finding(
                "etcd found its members' data to differ: the CORRUPT alarm is raised",
                (database.evidence(f"alarm CORRUPT of {alarm.member:x}"),),
            )
    peers = tuple(case.peers())
    if not peers and (state := asked(case.node)) is not None and len(state.hashes) > 1:
        return
    if not peers:
        raise NotApplicable("one node alone has nothing to be compared with")
    own = case.data.digest
    if own is None:
        raise EvidenceMissing("no revision that all members have can be read")
    for node, stored in peers:
        if stored.digest and stored.digest[0] == own[0] and stored.digest[1] != own[1]:
            there = Evidence(stored.database.path, None, f"{node.name}: {stored.digest[1]} at revision {own[0]}")
            yield Finding(
                f"At revision {own[0]} this member holds other data than {node.name}'s",
                (database.evidence(f"{own[1]} at revision {own[0]}"), there),
            )


def _answered(case: Case) -> Iterator[Finding]:
    """The members' own hashes, where they run: all of one revision."""
    state = asked(case.node)
    hashes = [answer for answer in state.hashes if answer.hash is not None] if state else []
    if len({answer.hash for answer in hashes}) > 1:
        yield Finding(
            f"At revision {hashes[0].revision} the running members hold different data",
            tuple(answer.evidence for answer in hashes),
        )


def _logged(case: Case) -> Iterator[Finding]:
    try:
        line = said(recent_log(case.node), FOUND)
    except EvidenceMissing:
        return
    if line:
        yield Finding("etcd found its members' data to differ", (line.evidence,))
