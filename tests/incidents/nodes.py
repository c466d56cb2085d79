"""The nodes that incidents are played on: one laid by code, and real kubeadm's."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from drtool.commands.check import judged
from drtool.core.report import Severity
from tests.builders.real import real
from tests.builders.tree import NOW, Tree, laid

SINGLE = ("made", "lab-live-1.37")
SECOND = ("ha-vip-cp2-1.37", "lab-one-door-cp2-1.37")


def node_tree(name: str, into: Path) -> Tree:
    return laid(into) if name == "made" else real(name, into)


def causes(tree: Tree, at: datetime = NOW) -> tuple[str, ...]:
    """What `drtool check --root TREE --at TIME` names as root causes, as far as files other than etcd's data tell."""
    return judged(tree.node(at)).verdict.root_causes


def faults(tree: Tree, at: datetime = NOW) -> tuple[str, ...]:
    """Ids of everything at or above `error`, consequences too."""
    found = judged(tree.node(at)).verdict.findings
    return tuple(dict.fromkeys(one.id for one in found if one.severity >= Severity.ERROR))


def warned(tree: Tree, id_: str, at: datetime = NOW) -> bool:
    found = judged(tree.node(at)).verdict.findings
    return any(one.id == id_ and one.severity < Severity.ERROR for one in found)


each_single = pytest.mark.parametrize("name", SINGLE)
