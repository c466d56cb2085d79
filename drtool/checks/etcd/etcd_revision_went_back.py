"""After a restore, revisions must go on from where clients have seen them.

Controllers, kubelets and API servers remember the newest revision. A db restored from an older snapshot hands out the
same numbers for other contents: watches miss events, and the API answers `Too large resource version`. A restore with
a bumped revision and everything before it compacted makes all of them list anew.

Fix: restore again with --bump-revision and --mark-compacted (drtool does both), then restart the API servers,
controller-manager, scheduler and every kubelet.
"""

import json
from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import said

SEVERITY = Severity.ERROR
RECORD = "/var/lib/drtool/last-backup.json"
TOO_LARGE = r"Too large resource version"
CONTAINERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def find(case: Case) -> Iterator[Finding]:
    database = case.database
    index, revision = database.cluster.consistent_index, database.revision
    known = _recorded(case)
    if known > revision:
        yield Finding(
            f"etcd is at revision {revision}, and a backup of it was taken at {known}",
            (database.evidence(f"revision {revision}"), Evidence(RECORD, None, f"revision {known}")),
            severity=None if _same_cluster(case) else Severity.WARNING,
        )
    elif revision > index:  # each revision takes a raft entry: this db was restored into a new cluster
        lines = [
            *case.node.journal("kubelet"),
            *(one for c in CONTAINERS for one in case.node.container_logs.get(c, ())),
        ]
        line = said(tuple(lines), TOO_LARGE)
        if line:
            yield Finding(
                f"etcd was restored, and clients have seen revisions beyond its {revision}",
                (database.evidence(f"revision {revision}, raft index {index}"), line.evidence),
            )


def _same_cluster(case: Case) -> bool:
    """A record of another cluster may be left from before a new `kubeadm init`, whose clients saw no later revision."""
    record = _record(case)
    try:
        return str(record.get("cluster", "")) in {"", f"{case.data.log.cluster_id:016x}"}
    except (EvidenceMissing, NotApplicable):
        return True


def _recorded(case: Case) -> int:
    """The revision of the last backup; 0 where none is recorded."""
    revision = _record(case).get("revision")
    return revision if isinstance(revision, int) else 0


def _record(case: Case) -> dict[str, object]:
    try:
        record = json.loads(case.node.entry(RECORD).data or b"{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
