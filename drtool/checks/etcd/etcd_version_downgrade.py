"""etcd must not run as an older line than the one its data was last served by.

A data directory that a newer etcd has used makes an older one exit: `version "3.7.0" is not supported`, or `invalid
downgrade; server version is lower than determined cluster version`. It happens when an old manifest is put back, from
a backup or from /etc/kubernetes/tmp, without the data that belongs to it. Differences of the patch level mean
nothing, and one line down is allowed after `etcdctl downgrade enable`.

Fix: put the newer image back, or restore the snapshot that was taken before the upgrade. Never delete the data
directory.
"""

import re
from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.etcd import last_words

SEVERITY = Severity.CRITICAL
EXPLAINS = (
    "etcd-flag-vs-version",
    "feature-gate-unknown",
    "image-inconsistent",
    "upgrade-leftovers",
    "container-exited",
    "component-not-ready",
)
REFUSED = (
    r"invalid downgrade; server version is lower|cluster cannot be downgraded"
    r"|version \\*\"\d+\.\d+\.\d+\\*\" is not supported"
)


def find(case: Case) -> Iterator[Finding]:
    etcd = case.node.etcd
    words = last_words(case.node, REFUSED)
    if words is not None:
        yield Finding("etcd is older than its data, as it says itself", (words, etcd.image_evidence))
    if etcd.version is None:
        raise EvidenceMissing(f"{etcd.container.image} does not say which version of etcd it is")
    cluster = case.database.cluster
    runs = etcd.version[:2]
    if _line(cluster.downgrade) == runs:
        return
    served = _line(cluster.version)
    stored = _line(cluster.storage_version)
    # 3.5 and older do not look at the storage version; the cluster version stops every line
    newest = max(served, stored if runs >= (3, 6) else served)
    if runs < newest:
        text = cluster.version if served == newest else cluster.storage_version
        kind = "cluster version" if served == newest else "storage version"
        yield Finding(
            f"etcd {_text(etcd.version)} is older than its data, which etcd {_text(newest)} has served",
            (etcd.image_evidence, case.database.evidence(f"{kind} {text}")),
        )


def _line(version: str) -> tuple[int, ...]:
    """Major and minor; (0,) where none is recorded."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0,)


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
