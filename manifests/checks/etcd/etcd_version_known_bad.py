"""Some releases of etcd are known to lose or diverge data.

3.5.0 to 3.5.2 can commit the raft index ahead of the data when they are killed under load: members then differ and say
nothing (fixed in 3.5.3). 3.5.1 to 3.5.23 do not write a learner's promotion to the db: an upgrade to 3.6, which trusts
the db, then ends in `too many learner members in cluster` (3.5.24 repairs it).

Fix: upgrade etcd to the newest patch of its line before anything else.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING


def find(node: Node) -> Iterator[Finding]:
    etcd = node.etcd
    version = etcd.version
    if version is None:
        raise EvidenceMissing(f"{etcd.container.image} does not say which version of etcd it is")
    text = ".".join(map(str, version))
    if (3, 5, 0) <= version <= (3, 5, 2):
        yield Finding(f"etcd {text} can corrupt its data when it is killed under load", (etcd.image_evidence,))
    elif (3, 5, 3) <= version <= (3, 5, 23):
        yield Finding(
            f"etcd {text} does not record promoted learners: go through 3.5.24 or newer before 3.6",
            (etcd.image_evidence,),
        )
