"""The file systems that a node writes to must have inodes left.

`no space left on device` with space to spare means that no further file can be made: many small files (container
layers, logs of short-lived Pods) used up the inodes. Below the kubelet's threshold (5 per cent by default) Pods are
evicted.

Fix: find the directory with the most files (`du --inodes -x / | sort -n | tail`), remove what is not needed.
"""

from __future__ import annotations

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.checks.host.disk_full import EXPLAINS as CONSEQUENCES
from manifests.host.space import complaints, relevant, threshold
from manifests.messages import last_said
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = CONSEQUENCES
EVICTS = r"must evict pod\(s\) to reclaim(\" resourceName=\"| )inodes"
SHARE = 0.005


def find(node: Node) -> Iterator[Finding]:
    evicted = last_said(node, EVICTS, "kubelet")
    try:
        filesystems = relevant(node)
    except EvidenceMissing:
        if evicted is None:
            raise
        filesystems = ()
    fired = False
    for found in filesystems:
        if not found.inodes:
            continue
        left = found.inodes_free / found.inodes
        limit, share = threshold(node, "nodefs.inodesFree", 0.05)
        said = tuple(line.evidence for line in complaints(node)[-1:])
        if left < SHARE:
            fired = True
            yield Finding(f"{found.mount} has no inodes left: {found.inodes_free}", (found.evidence, *said))
        elif limit is not None and (left < limit if share else found.inodes_free < limit):
            fired = True
            title = f"{found.mount} is below the kubelet's eviction threshold of inodes: {left:.1%} are free"
            yield Finding(title, (found.evidence,), severity=Severity.ERROR)
    if evicted is not None and not fired:
        yield Finding("The kubelet evicts Pods to free inodes", (evicted.evidence,))
