"""From findings to root causes and consequences.

Two rules. What a found fault makes inevitable (its check's EXPLAINS) is its consequence, through any number of steps.
And a symptom - what a running or crashed process says - is a consequence of any fault in its own layer or below. What
is left at or above `error` is a cause; a fault that stands in the files alone stays one even above another, since it
would break alone: both are reported, lowest layer first, which is the order to repair them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    faults = {item.check.id: item.check for item in found if item.severity >= Severity.ERROR}
    explained = _explained(faults, found)
    judged = [_judge(item, explained) for item in found]
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


def _explained(faults: Mapping[str, Check], found: list[_Found]) -> dict[str, tuple[str, ...]]:
    """Each id that something else explains, with the root ids that do."""
    parents: dict[str, set[str]] = {}
    for fault in faults.values():
        for id_ in fault.explains:
            if id_ != fault.id and id_ in faults:
                parents.setdefault(id_, set()).add(fault.id)
    layers = {item.check.id: item.layer for item in found if item.severity >= Severity.ERROR}
    for fault in faults.values():
        if fault.symptom:
            below = {o.id for o in faults.values() if not o.symptom and layers[o.id] <= layers[fault.id]}
            parents.setdefault(fault.id, set()).update(below)
    return {id_: roots for id_ in parents if (roots := _roots(id_, parents, layers))}


def _roots(id_: str, parents: Mapping[str, set[str]], layers: Mapping[str, Layer]) -> tuple[str, ...]:
    """The ends of all ways up from an id. In a ring of checks that explain each other the lowest layer is the root."""
    seen: set[str] = set()
    waiting = [id_]
    while waiting:
        for parent in parents.get(waiting.pop(), ()):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    roots = [found for found in seen if not parents.get(found)]
    if not roots and seen:
        first = min(seen | {id_}, key=lambda found: (layers[found], found))
        roots = [] if first == id_ else [first]
    return tuple(sorted(roots, key=lambda found: (layers[found], found)))


def _judge(item: _Found, explained: Mapping[str, tuple[str, ...]]) -> Judged:
    id_ = item.check.id
    if item.severity < Severity.ERROR:
        return Judged(id_, item.finding, item.severity, item.layer, Role.RISK)
    causes = explained.get(id_, ())
    role = Role.CONSEQUENCE if causes else Role.CAUSE
    return Judged(id_, item.finding, item.severity, item.layer, role, causes)
