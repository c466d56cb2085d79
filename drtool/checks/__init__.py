"""Checks that weigh a node's files against etcd's data or against other nodes: one file a check, a folder a layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from drtool.core.check import EvidenceMissing, NotApplicable
from manifests.node import Node
from snapshots.facts import Database, DataDirectory
from snapshots.registry.cluster import Cluster


@dataclass(frozen=True)
class Case:
    """A node with what is known around it: its etcd data, and the further nodes that are judged together with it.

    `stored` is the node's data directory, `beside` those of `others` in the same order; None where a node has none.
    `objects` are the cluster's objects in its db, or the reason why they cannot be read.
    """

    node: Node
    others: tuple[Node, ...] = field(default=())
    stored: DataDirectory | None = None
    beside: tuple[DataDirectory | None, ...] = ()
    objects: Cluster | str = "etcd's data was not looked at"

    @property
    def data(self) -> DataDirectory:
        """NotApplicable where this kind of node runs no etcd; EvidenceMissing where its directory was not looked at."""
        if self.stored is None:
            if "etcd" not in self.node.layout.programs:
                raise NotApplicable(f"a {self.node.layout} node runs no etcd")
            raise EvidenceMissing("etcd's data directory is not known")
        if not self.stored.present:
            raise EvidenceMissing(f"{self.stored.path} is not in this tree")
        return self.stored

    @property
    def database(self) -> Database:
        """The node's own db; EvidenceMissing says why there is none."""
        return self.data.database

    @property
    def cluster(self) -> Cluster:
        """The objects in the node's own db; EvidenceMissing says why there are none."""
        if isinstance(self.objects, str):
            raise EvidenceMissing(self.objects)
        return self.objects

    def peers(self) -> Iterator[tuple[Node, DataDirectory]]:
        """The other nodes that have data to look at."""
        for node, stored in zip(self.others, self.beside, strict=False):
            if stored is not None and stored.present:
                yield node, stored
