"""A replacement member must join the cluster that is there (--initial-cluster-state=existing), not found a new one.

With `new` (or without the flag), several members in the list and an empty data directory it starts a second cluster
with its own cluster id: the others answer `request cluster ID mismatch`. With `existing` and nobody else in the list
it has nobody to ask, and exits with `could not retrieve cluster information from the given URLs`. A member that has
data reads the flag no more: kubeadm's first node has `new` or no flag for ever.

Fix: for a replacement, remove the old member from the cluster, add the new one, and start it with `existing` and an
empty data directory.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import data_directory, has_data, recent_log, said
from manifests.identity import members
from manifests.layout import Layout
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("etcd-cluster-id-mismatch", "etcd-data-dir-missing", "container-exited", "component-not-ready")
MISMATCH = r"cluster ID mismatch"


def find(node: Node) -> Iterator[Finding]:
    etcd = node.etcd
    listed = etcd.flag("initial-cluster")
    several = len(members(node)) > 1
    state = etcd.value("initial-cluster-state", "new")
    flag = etcd.flag("initial-cluster-state").evidence if etcd.has("initial-cluster-state") else listed.evidence
    empty = not has_data(node)
    directory = Evidence(data_directory(node), None, "holds no member" if empty else "holds a member")
    if state == "existing":
        if empty and not several and etcd.value("name") in members(node):
            yield Finding(
                "etcd is to join an existing cluster, and --initial-cluster names nobody but itself",
                (flag, listed.evidence, directory),
            )
        return
    if not several:
        return
    mismatch = _mismatch(node)
    if mismatch or (empty and node.layout is Layout.STACKED):
        yield Finding(
            "etcd was told to found a new cluster, while --initial-cluster names members that exist",
            (flag, listed.evidence, directory, *mismatch),
        )


def _mismatch(node: Node) -> tuple[Evidence, ...]:
    """What the log says, where there is one: three members that start together are also told `new`."""
    try:
        line = said(recent_log(node), MISMATCH)
    except EvidenceMissing:
        return ()
    return (line.evidence,) if line else ()
