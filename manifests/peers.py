"""Other nodes of the same cluster, where several are judged together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from drtool.core.check import EvidenceMissing
from manifests.node import Node
from manifests.pki.credentials import CLUSTER_CA
from manifests.pki.trust import authorities


def same_cluster(node: Node, others: Iterable[Node]) -> Iterator[Node]:
    """Control planes that trust a cluster CA which this node trusts too: a tree of another cluster says nothing."""
    try:
        ours = {certificate.public_key for certificate in authorities(node, CLUSTER_CA)}
    except EvidenceMissing:
        return
    for other in others:
        try:
            theirs = {certificate.public_key for certificate in authorities(other, CLUSTER_CA)}
        except EvidenceMissing:
            continue
        if ours & theirs and other.layout.control_plane:
            yield other
