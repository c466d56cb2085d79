"""Judges a node: captures it once, runs every check, puts causes first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import Any

import drtool.checks
import manifests.checks
from drtool.checks import Case
from drtool.commands.capture import gather
from drtool.core.causes import Judged, Verdict, judge
from drtool.core.check import Check, load, run_one
from drtool.core.errors import CannotTell
from drtool.core.report import Outcome, Severity, Status
from drtool.host.root import Root
from manifests.certificates import utc
from manifests.layout import Layout
from manifests.node import Node, seen

PACKAGES: tuple[ModuleType, ...] = (manifests.checks, drtool.checks)


@dataclass(frozen=True)
class Report:
    node: Node
    checks: tuple[Check, ...]
    outcomes: tuple[Outcome, ...]
    verdict: Verdict

    def worst(self) -> Severity | None:
        return max((judged.severity for judged in self.verdict.findings), default=None)

    @property
    def is_node(self) -> bool:
        return self.node.layout not in {Layout.NOT_KUBEADM, Layout.EMPTY}

    def broken(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.status is Status.BROKEN)


def check(root: Root, at: datetime | None = None, probe: bool = True) -> Report:
    """Any directory is judged: one that is no node has layout `empty`, and no check passes on it.

    On the running machine its programs are asked, too, unless `probe` is off.
    """
    if not root.directory.is_dir():
        raise CannotTell(
            f"{root.directory} is not a directory", "name the root of a node's tree, or an unpacked bundle"
        )
    return judged(seen(gather(root, probe), at))


def judged(node: Node) -> Report:
    checks = all_checks()
    outcomes = tuple(_outcome_of(check, node) for check in checks)
    return Report(node, checks, outcomes, judge(outcomes, checks))


def _outcome_of(check: Check, node: Node) -> Outcome:
    """A tree of another distribution, or of no node, is named and not judged."""
    if node.layout in {Layout.NOT_KUBEADM, Layout.EMPTY} and check.folder != "layout":
        return Outcome(check.id, Status.SKIPPED, reason="not a kubeadm node")
    subject: object = Case(node) if check.find.__module__.startswith("drtool.checks.") else node
    return run_one(check, subject)


def all_checks() -> tuple[Check, ...]:
    return tuple(sorted((check for package in PACKAGES for check in load(package)), key=lambda check: check.id))


def as_data(report: Report) -> dict[str, Any]:
    """What `-o json` prints: the contract of interface.md."""
    node = report.node
    etcd = node.components.get("etcd")
    return {
        "schemaVersion": 1,
        "node": {
            "name": node.name,
            "layout": str(node.layout),
            "kubernetes": dotted(node.kubernetes, "v"),
            "etcd": dotted(etcd.version if etcd else None, ""),
        },
        "at": utc(node.at),
        "rootCauses": list(report.verdict.root_causes),
        "findings": [_finding(judged) for judged in report.verdict.findings],
        "checks": [_outcome(outcome) for outcome in sorted(report.outcomes, key=lambda outcome: outcome.id)],
    }


def dotted(numbers: Iterable[int] | None, prefix: str) -> str | None:
    return prefix + ".".join(str(number) for number in numbers) if numbers is not None else None


def _finding(judged: Judged) -> dict[str, Any]:
    finding = judged.finding
    return {
        "id": judged.id,
        "severity": str(judged.severity),
        "role": str(judged.role),
        "causedBy": list(judged.caused_by),
        "title": finding.title,
        "evidence": [{"path": e.path, "line": e.line, "text": e.text} for e in finding.evidence],
        "fix": {"command": finding.fix.command, "summary": finding.fix.summary} if finding.fix else None,
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {"id": outcome.id, "status": str(outcome.status)}
    if outcome.reason:
        found["reason"] = outcome.reason
    return found
