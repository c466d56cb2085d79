"""Checks that weigh a node's files against etcd's data or against other nodes: one file a check, a folder a layer."""

from __future__ import annotations

from dataclasses import dataclass, field

from manifests.node import Node


@dataclass(frozen=True)
class Case:
    """A node with what is known around it: the further nodes that are judged together with it."""

    node: Node
    others: tuple[Node, ...] = field(default=())
