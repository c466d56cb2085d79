"""From findings to root causes and consequences.

Two rules. What a found fault makes inevitable (its check's EXPLAINS) is its consequence, through any number of steps.
And a symptom - what a running or crashed process says - is a consequence of any fault in its own layer or below. What
is left at or above `error` is a cause; a fault that stands in the files alone stays one even above another, since it
would break alone: both are reported, lowest layer first, which is the order to repair them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from drtool.core.check import Check
from drtool.core.report import Finding, Layer, Outcome, Role, Severity


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding with its place in the outage. `caused_by` are ids of causes, nearest cause first."""

    id: str
    finding: Finding
    severity: Severity
    layer: Layer
    role: Role
    caused_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Every finding, causes first, each group in the order to repair; and the ids of the causes."""

    findings: tuple[Judged, ...]
    root_causes: tuple[str, ...]


def judge(outcomes: Iterable[Outcome], checks: Iterable[Check]) -> Verdict:
    known = {check.id: check for check in checks}
    found = [
        _Found(known[outcome.id], finding)
        for outcome in outcomes
        for finding in outcome.findings
        if outcome.id in known
    ]
    blame = _Blame([item for item in found if item.severity >= Severity.ERROR])
    judged = [_judge(item, blame) for item in found]
    order = {Role.CAUSE: 0, Role.CONSEQUENCE: 1, Role.RISK: 2}
    judged.sort(key=lambda j: (order[j.role], j.layer, -j.severity, j.id))
    causes = dict.fromkeys(j.id for j in judged if j.role is Role.CAUSE)
    return Verdict(tuple(judged), tuple(causes))


@dataclass(frozen=True, slots=True)
class _Found:
    check: Check
    finding: Finding

    @property
    def severity(self) -> Severity:
        return self.check.severity if self.finding.severity is None else self.finding.severity

    @property
    def layer(self) -> Layer:
        return self.check.layer if self.finding.layer is None else self.finding.layer


class _Blame:
    """Who explains whom among the faults: ids are walked, from the one finding that is asked about."""

    def __init__(self, faults: Sequence[_Found]) -> None:
        self._checks = {item.check.id: item.check for item in faults}
        self._lowest: dict[str, Layer] = {}
        highest: dict[str, Layer] = {}
        for item in faults:
            self._lowest[item.check.id] = min(item.layer, self._lowest.get(item.check.id, item.layer))
            highest[item.check.id] = max(item.layer, highest.get(item.check.id, item.layer))
        self._parents = {id_: self._above(check, highest[id_]) for id_, check in self._checks.items()}

    def roots(self, item: _Found) -> tuple[str, ...]:
        """The ends of all ways up. In a ring of checks that explain each other the lowest layer is the root."""
        id_ = item.check.id
        seen: set[str] = set()
        waiting = self._above(item.check, item.layer)
        while waiting:
            parent = waiting.pop()
            if parent not in seen:
                seen.add(parent)
                waiting |= self._parents[parent]
        roots = [found for found in seen if not self._parents[found]]
        if not roots and seen:
            first = min(seen | {id_}, key=self._order)
            roots = [] if first == id_ else [first]
        return tuple(sorted(roots, key=self._order))

    def _above(self, check: Check, layer: Layer) -> set[str]:
        """What explains a finding of that layer: a symptom of etcd follows from less than one of the API server."""
        others = [other for other in self._checks.values() if other.id != check.id]
        told = {other.id for other in others if check.id in other.explains}
        if not check.symptom:
            return told
        return told | {other.id for other in others if not other.symptom and self._lowest[other.id] <= layer}

    def _order(self, id_: str) -> tuple[Layer, str]:
        return self._lowest[id_], id_


def _judge(item: _Found, blame: _Blame) -> Judged:
    id_ = item.check.id
    if item.severity < Severity.ERROR:
        return Judged(id_, item.finding, item.severity, item.layer, Role.RISK)
    causes = blame.roots(item)
    role = Role.CONSEQUENCE if causes else Role.CAUSE
    return Judged(id_, item.finding, item.severity, item.layer, role, causes)
