"""The plan that repairs findings: the changes of every builder, then what must start anew, then the proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from drtool.core.report import Finding
from drtool.plans import site
from drtool.plans.fix import Case, Etcd, Repair, builders, together
from drtool.plans.site import Draft, NodeStep
from manifests.node import Node
from manifests.steps.cluster import WaitForApiserver
from manifests.steps.running import RestartContainers, RestartKubelet
from snapshots.steps.data import WaitForEtcd

START = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@dataclass(frozen=True, slots=True)
class Found:
    """What one check found, and what `drtool explain` says of it."""

    id: str
    findings: tuple[Finding, ...]
    explanation: str


def mend(node: Node, plan: str, found: Iterable[Found], etcd: Etcd) -> Draft:
    """`found` is in the order to repair."""
    known = builders()
    repairs, titles = [], []
    for one in found:
        titles.append(one.id)
        case = Case(node, plan, one.id, one.findings, etcd)
        repairs.append(known[one.id](case) if one.id in known else _decide(one.findings, one.explanation))
    whole = together(repairs)
    return Draft("fix", f"fix {', '.join(titles)}", (*whole.steps, *_after(node, whole)), whole.by_hand)


def _decide(findings: tuple[Finding, ...], explanation: str) -> Repair:
    """Another command's plan where the check names one, else what the check says to do."""
    advice = explanation.partition("Fix:")[2].strip().split("\n\n")[0].replace("\n", " ")
    lines = []
    for finding in findings:
        other = finding.fix.command if finding.fix and not finding.fix.command.startswith("drtool fix") else ""
        lines.append(f"{finding.title}: {other or advice or 'decide'}")
    return Repair(by_hand=tuple(lines))


def _after(node: Node, whole: Repair) -> Iterator[NodeStep]:
    """A container that waits in a back-off does not see that its file is right; a kubelet's restart ends the wait."""
    if not whole.steps and not whole.restart:
        return
    touched = {program for program in START if _edited(node, program, whole)} | whole.restart
    restart = tuple(name for name in START if name in whole.restart)
    if restart:
        yield RestartContainers(restart, "they read what was issued anew")
    if whole.kubelet or touched:
        yield RestartKubelet("it reads its files again, and lets no container wait")
    if "etcd" in touched or "kube-apiserver" in touched:
        if site.present(node, "etcd"):
            yield WaitForEtcd(site.etcd_access(node))
        if site.present(node, "kube-apiserver"):
            yield WaitForApiserver(site.own_server(node))


def _edited(node: Node, program: str, whole: Repair) -> bool:
    component = site.present(node, program)
    return component is not None and any(getattr(step, "path", "") == component.path for step in whole.steps)
