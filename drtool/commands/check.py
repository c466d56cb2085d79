"""Judges a node, or several of one cluster together: captures each once, runs every check, puts causes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import ModuleType
from typing import Any

import drtool.checks
import manifests.checks
import snapshots.checks
from drtool.checks import Case
from drtool.commands.capture import gather
from drtool.commands.kept_outcomes import kept
from drtool.commands.objects_at_hand import objects
from drtool.commands.unread import unread
from drtool.core.causes import Judged, Verdict, judge
from drtool.core.check import Check, EvidenceMissing, NotApplicable, load, run_one
from drtool.core.report import Outcome, Severity, Status
from drtool.host.root import Entry, Root
from manifests.etcd import data_directory, wal_directory
from manifests.layout import Layout
from manifests.node import EXPIRY_DAYS, Node, seen
from manifests.pki.certificates import utc
from snapshots.facts import DataDirectory, compared, look
from snapshots.kept import decode

ETCD_FACTS = "/drtool/etcd.json"
PACKAGES: tuple[ModuleType, ...] = (manifests.checks, snapshots.checks, drtool.checks)


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

    @property
    def unread(self) -> Entry | None:
        """The static Pod directory, where it may not be read: then little was judged."""
        return unread([self.node.entry(self.node.manifests_directory)])

    def broken(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.status is Status.BROKEN)


def check(root: Root, at: datetime | None = None, probe: bool = True) -> Report:
    """Any directory is judged: one that is no node has layout `empty`, and no check passes on it.

    On the running machine its programs are asked, too, unless `probe` is off.
    """
    return check_together((root,), at, probe)[0]


def check_together(
    roots: Sequence[Root], at: datetime | None = None, probe: bool = True, expiry_days: int = EXPIRY_DAYS
) -> tuple[Report, ...]:
    """A report for each root, in order; each node is judged with the others beside it. CannotTell for no directory."""
    return judged_together(roots, [seen(gather(root, probe), at, expiry_days) for root in roots])


def judged_together(roots: Sequence[Root], nodes: Sequence[Node]) -> tuple[Report, ...]:
    stored = tuple(data(root, node) for root, node in zip(roots, nodes, strict=True))
    reports = []
    for root, case in zip(roots, cases(nodes, compared(roots, stored)), strict=True):
        with objects(root, case.node, case.stored) as at_hand:
            reports.append(_judged(replace(case, objects=at_hand)))
    return tuple(reports)


def data(root: Root, node: Node) -> DataDirectory | None:
    """What the node's etcd keeps on its disk, or a bundle says of it; None where this kind of node runs none."""
    if "etcd" not in node.layout.programs:
        return None
    facts = node.entry(ETCD_FACTS).data
    if facts is not None and not root.live:
        return decode(facts)
    apiserver = node.components.get("kube-apiserver")
    prefix = apiserver.value("etcd-prefix", "/registry") if apiserver else "/registry"
    return look(root, data_directory(node), wal_directory(node), prefix)


def cases(nodes: Sequence[Node], stored: Sequence[DataDirectory | None]) -> tuple[Case, ...]:
    return tuple(
        Case(node, (*nodes[:i], *nodes[i + 1 :]), stored[i], (*stored[:i], *stored[i + 1 :]))
        for i, node in enumerate(nodes)
    )


def judged(node: Node, stored: DataDirectory | None = None) -> Report:
    return _judged(Case(node, stored=stored))


def _judged(case: Case) -> Report:
    checks = all_checks()
    known = kept(case.node)
    found = (_outcome_of(check, case) for check in checks)
    outcomes = tuple(known.get(one.id, one) if one.status is Status.UNKNOWN else one for one in found)
    return Report(case.node, checks, outcomes, judge(outcomes, checks))


def _outcome_of(check: Check, case: Case) -> Outcome:
    """A tree of another distribution, or of no node, is named and not judged."""
    if case.node.layout in {Layout.NOT_KUBEADM, Layout.EMPTY} and check.folder != "layout":
        return Outcome(check.id, Status.SKIPPED, reason="not a kubeadm node")
    try:
        return run_one(check, _subject(check, case))
    except EvidenceMissing as gap:
        return Outcome(check.id, Status.UNKNOWN, reason=str(gap))
    except NotApplicable as gap:
        return Outcome(check.id, Status.SKIPPED, reason=str(gap))


def _subject(check: Check, case: Case) -> object:
    """What a check weighs follows from where it lies: files, a db, its objects, or all of them."""
    package = check.find.__module__.partition(".")[0]
    if package == "snapshots":
        return case.database if check.folder == "etcd" else case.cluster
    return case if package == "drtool" else case.node


def all_checks() -> tuple[Check, ...]:
    """What the cluster's objects say is a consequence of any fault in the layers below (checks.md, order of blame).

    Where objects alone and objects beside a node's files answer one question, the latter takes the place of the former.
    """
    found = {check.id: check for package in PACKAGES for check in load(package)}
    weighed = [replace(check, symptom=True) if _over_objects(check) else check for check in found.values()]
    return tuple(sorted(weighed, key=lambda check: check.id))


def _over_objects(check: Check) -> bool:
    return check.folder == "objects" or (check.find.__module__.startswith("snapshots.") and check.folder != "etcd")


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
        **verdict_as_data(report.verdict, report.outcomes),
    }


def verdict_as_data(verdict: Verdict, outcomes: Iterable[Outcome]) -> dict[str, Any]:
    return {
        "rootCauses": list(verdict.root_causes),
        "findings": [_finding(judged) for judged in verdict.findings],
        "checks": [_outcome(outcome) for outcome in sorted(outcomes, key=lambda outcome: outcome.id)],
    }


def together_as_data(reports: Sequence[Report]) -> dict[str, Any]:
    """One node: `as_data`. Several: that of the first, `nodes` with each one's own, and `rootCauses` of them all."""
    whole = as_data(reports[0])
    if len(reports) > 1:
        layers = {judged.id: judged.layer for report in reports for judged in report.verdict.findings}
        causes = dict.fromkeys(cause for report in reports for cause in report.verdict.root_causes)
        whole["rootCauses"] = sorted(causes, key=lambda cause: layers[cause])
        whole["nodes"] = [
            {key: value for key, value in as_data(report).items() if key != "schemaVersion"} for report in reports
        ]
    return whole


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
