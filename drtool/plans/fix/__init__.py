"""A finding's repair, where there is one right answer: one builder a group of checks, by the check's id.

A builder gets the node, the plan's id and the findings of one check, and gives the changes and what must read them
again. What it does not know how to put right it names in `by_hand`, for a person to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from drtool.core.report import Finding
from drtool.plans.rebuild import Standing
from drtool.plans.site import NodeStep
from manifests.node import Node


@dataclass(frozen=True, slots=True)
class Repair:
    """`restart` are the programs whose containers must start anew, `kubelet` whether the kubelet must, at the end."""

    steps: tuple[NodeStep, ...] = ()
    restart: frozenset[str] = field(default_factory=frozenset)
    kubelet: bool = False
    by_hand: tuple[str, ...] = ()

    def __add__(self, other: Repair) -> Repair:
        steps = tuple(dict.fromkeys((*self.steps, *other.steps)))
        by_hand = tuple(dict.fromkeys((*self.by_hand, *other.by_hand)))
        return Repair(steps, self.restart | other.restart, self.kubelet or other.kubelet, by_hand)


def together(repairs: Iterable[Repair]) -> Repair:
    return sum(repairs, Repair())


@dataclass(frozen=True, slots=True)
class Etcd:
    """What the running etcd says of itself: client URLs of the members that answer, and the members that do not."""

    answering: tuple[str, ...] = ()
    silent: tuple[Standing, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What a builder works from; `id` is the check's."""

    node: Node
    plan: str
    id: str
    findings: tuple[Finding, ...]
    etcd: Etcd = field(default_factory=Etcd)


Builder = Callable[[Case], Repair]


def builders() -> Mapping[str, Builder]:
    """Every builder by the id of the check whose findings it repairs."""
    from drtool.plans.fix import certificates, kubeconfigs, kubelet, manifest, members, modes

    modules = (certificates, kubeconfigs, kubelet, manifest, members, modes)
    return MappingProxyType({name: builder for module in modules for name, builder in module.BUILDERS.items()})
