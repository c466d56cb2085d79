"""etcd 3.6 and newer do not start with more learners than allowed (one, unless --max-learners says more).

Releases 3.5.1 to 3.5.23 do not write a learner's promotion to the db, only to the old store. 3.6 trusts the db, takes
the promoted members for learners still, and exits: `membership: too many learner members in cluster`. One learner,
while a member joins, is fine.

Fix: go back to the old image, then through 3.5.24 or newer, which repairs the db, before 3.6.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.etcd import last_words

SEVERITY = Severity.CRITICAL
EXPLAINS = ("etcd-quorum-impossible", "etcd-membership-stale", "image-inconsistent", "container-exited")
FIRST = (3, 6, 0)
REFUSED = r"too many learner members in cluster"


def find(case: Case) -> Iterator[Finding]:
    etcd = case.node.etcd
    words = last_words(case.node, REFUSED)
    if words is not None:
        yield Finding(
            "etcd's db has more learners than it starts with, as it says itself", (words, etcd.image_evidence)
        )
    members = case.database.cluster.members
    learners = [member for member in members if member.learner]
    allowed = etcd.value("max-learners") or etcd.value("experimental-max-learners") or "1"
    if len(learners) <= (int(allowed) if allowed.isdecimal() else 1):
        return
    version = etcd.version
    if version is None:
        raise EvidenceMissing(f"{etcd.container.image} does not say which version of etcd it is")
    names = ", ".join(member.name or f"{member.id:x}" for member in learners)
    said = case.database.evidence(f"{len(learners)} of {len(members)} members are learners: {names}")
    if version >= FIRST:
        yield Finding(
            f"etcd's db has {len(learners)} learners, and etcd {_text(version)} starts with {allowed} at most",
            (etcd.image_evidence, said),
        )
    else:
        yield Finding(
            f"etcd's db has {len(learners)} learners: etcd 3.6 would not start on it",
            (etcd.image_evidence, said),
            severity=Severity.WARNING,
        )


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
