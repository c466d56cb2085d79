"""Static Pods: state from the runtime where it is known, the log's tail, the manifest with offending lines marked."""

from __future__ import annotations

from collections.abc import Sequence

from drtool.commands.check import Report
from drtool.core.check import EvidenceMissing, NotApplicable
from manifests.pod import StaticPod
from tui.screens.listing import Listing
from tui.widgets.rows import Row

TAIL = 15
MARK = ">> "


class Pods(Listing):
    NAME = "Static Pods"
    QUESTION = "check"

    def rows(self, value: object) -> Sequence[Row]:
        assert isinstance(value, Report)  # noqa: S101 - the type of this question's answer
        known = self.drtool.report() or value
        return [Row(_line(known, pod), "", (known, pod)) for pod in known.node.pods]

    def detail(self, row: Row) -> Sequence[str]:
        if not isinstance(row.subject, tuple):
            return (row.text,)
        report, pod = row.subject
        return [*_log(report, pod), "", *_manifest(report, pod)]


def _line(report: Report, pod: StaticPod) -> str:
    images = " ".join(container.image for container in pod.containers)
    try:
        states = [c for c in report.node.containers if c.pod.startswith(pod.name)]
        newest = states[-1] if states else None
        state = f"{newest.state}, restarts {newest.attempt}" if newest else "no container"
    except (EvidenceMissing, NotApplicable) as gap:
        state = f"state not known: {gap}"
    return f"{pod.name:26} {state:28} {images}"


def _log(report: Report, pod: StaticPod) -> list[str]:
    lines = []
    for container in pod.containers:
        try:
            tail = report.node.log(container.name)[-TAIL:]
        except EvidenceMissing as gap:
            lines.append(f"log of {container.name}: {gap}")
            continue
        lines += [f"log of {container.name}, last {len(tail)} lines:", *(f"  {line.text}" for line in tail)]
    return lines


def _manifest(report: Report, pod: StaticPod) -> list[str]:
    """Lines that a finding points to are marked by shape, not by colour."""
    marked = {
        evidence.line: judged.id
        for judged in report.verdict.findings
        for evidence in judged.finding.evidence
        if evidence.path == pod.path and evidence.line is not None
    }
    lines = [f"{pod.path}:"]
    for number, text in enumerate(pod.document.text, 1):
        mark = f"   <- {marked[number]}" if number in marked else ""
        lines.append(f"{MARK if number in marked else '   '}{number:4} {text}{mark}")
    return lines
