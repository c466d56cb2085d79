"""What a host needs before kubeadm makes a node of it, seen on a bare host, a joined node or a copied tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import manifests.preflight
from drtool.commands.capture import gather
from drtool.commands.carrying import plan_of
from drtool.core.check import Check, load, run
from drtool.core.plan import Plan
from drtool.core.report import Finding, Outcome, Severity, Status
from drtool.host.machine import Host
from drtool.host.root import Root
from drtool.plans.preparation import preparation
from manifests.host.clones import compare
from manifests.node import Node, seen


@dataclass(frozen=True, slots=True)
class Item:
    """One thing looked at: what kubeadm calls it ("" where kubeadm leaves it to people), and what came of it."""

    check: Check
    kubeadm: tuple[str, ...]
    outcome: Outcome

    @property
    def worst(self) -> Severity | None:
        severities = (finding.severity for finding in self.outcome.findings)
        return max((self.check.severity if one is None else one for one in severities), default=None)


@dataclass(frozen=True)
class Preflight:
    """One host; `shared` are things that it has in common with another one and must not (several hosts only)."""

    node: Node
    items: tuple[Item, ...]
    shared: tuple[Finding, ...] = ()

    @property
    def good(self) -> bool:
        return not self.shared and all((item.worst or Severity.INFO) < Severity.ERROR for item in self.items)


def preflight(roots: Sequence[Root]) -> tuple[Preflight, ...]:
    """A result for each host, in order. CannotTell for no directory."""
    nodes = [seen(gather(root, probe=False), None) for root in roots]
    shared = tuple(compare(nodes)) if len(nodes) > 1 else ()
    return tuple(Preflight(node, items(node), shared) for node in nodes)


def items(node: Node) -> tuple[Item, ...]:
    checks = load(manifests.preflight)
    outcomes = run(checks, node)
    return tuple(Item(check, _kubeadm(check), outcome) for check, outcome in zip(checks, outcomes, strict=True))


def _kubeadm(check: Check) -> tuple[str, ...]:
    from importlib import import_module

    return tuple(getattr(import_module(check.find.__module__), "KUBEADM", ()))


def plan(root: Root) -> Plan[Host]:
    """What has one right answer, put right; without steps where nothing has."""
    node = seen(gather(root, probe=False), None)
    failed = frozenset(item.check.id for item in items(node) if item.outcome.status is Status.FAILED)
    return plan_of(preparation(node, failed), node.hostname or "this-host")


def as_data(found: Sequence[Preflight]) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "good": all(one.good for one in found),
        "hosts": [
            {
                "name": one.node.hostname,
                "items": [_item(item) for item in one.items],
                "shared": [_finding(finding) for finding in one.shared],
            }
            for one in found
        ],
    }


def _item(item: Item) -> dict[str, Any]:
    return {
        "id": item.check.id,
        "kubeadm": list(item.kubeadm),
        "status": str(item.outcome.status),
        "severity": str(item.worst) if item.worst is not None else None,
        "reason": item.outcome.reason,
        "findings": [_finding(finding) for finding in item.outcome.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "title": finding.title,
        "evidence": [{"path": e.path, "line": e.line, "text": e.text} for e in finding.evidence],
    }
