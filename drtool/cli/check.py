"""`drtool check`"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from drtool.cli._output import emit, output_option, visible
from drtool.commands.check import Report, as_data, check, dotted
from drtool.commands.tree import opened
from drtool.core.causes import Judged
from drtool.core.errors import CannotTell
from drtool.core.report import Role, Severity, Status

MARKS = {Role.CAUSE: "CAUSE", Role.CONSEQUENCE: "follows", Role.RISK: "risk"}


class Moment(click.ParamType[datetime]):
    """A time as ISO 8601; UTC where it names no zone."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value} is no time such as 2026-12-15T00:00:00Z", param, ctx)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@click.command(epilog="Example: drtool check --root /mnt/cp-1 --at 2026-12-15T00:00:00Z")
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path("/"),
    help="A node's tree, or a bundle of `drtool collect`, packed or not.",
)
@click.option("--at", type=Moment(), help="Judge as of this time; else when the bundle was taken, else now.")
@click.option(
    "--fail-on",
    type=click.Choice([str(severity) for severity in Severity]),
    default="error",
    show_default=True,
    help="Exit 4 when a finding is at least this bad.",
)
@click.option("--no-probe", is_flag=True, help="Read files only: ask no endpoint, runtime or unit of this machine.")
@output_option
def command(root: Path, at: datetime | None, fail_on: str, no_probe: bool, output: str) -> int:
    """Read the node and name root causes first, then consequences and risks."""
    with opened(root) as tree:
        report = check(tree, at, probe=not no_probe)
    emit(as_data(report), output, lambda: as_text(report))
    worst = report.worst()
    if worst is not None and worst >= Severity[fail_on.upper()]:
        return 4
    if not report.is_node:
        raise CannotTell(
            f"{root} is no node that drtool knows (layout {report.node.layout})",
            "--root takes the directory that stands for the / of a node made by kubeadm",
        )
    return 3 if report.broken() else 0


def as_text(report: Report) -> str:
    node = report.node
    version = dotted(node.kubernetes, "v") or "version unknown"
    lines = [
        f"{node.name or 'unnamed node'}: {node.layout}, Kubernetes {version}, judged at {node.at:%Y-%m-%d %H:%M} UTC"
    ]
    findings = report.verdict.findings
    for judged in findings:
        if judged.role is Role.CAUSE:
            lines += _with_consequences(judged, findings)
    lines += [line for judged in findings if judged.role is Role.RISK for line in _lines(judged)]
    lines.append("")
    lines.append(_summary(report))
    lines += [f"  {outcome.id} crashed: {outcome.reason}" for outcome in report.broken()]
    return "\n".join(lines)


def _with_consequences(cause: Judged, findings: tuple[Judged, ...]) -> list[str]:
    """What a cause explains is listed once, under the first finding of its id."""
    lines = _lines(cause)
    if cause.finding.fix:
        lines.append(f"    fix: {cause.finding.fix.command}")
        lines.append(f"         {cause.finding.fix.summary}")
    same = [judged for judged in findings if judged.role is Role.CAUSE and judged.id == cause.id]
    follows = [judged for judged in findings if judged.caused_by[:1] == (cause.id,)]
    if follows and same[0] is cause:
        lines.append("    what follows from it:")
        lines += [f"      {visible(judged.finding.title)} ({judged.id})" for judged in follows]
    return lines


def _lines(judged: Judged) -> list[str]:
    head = f"{MARKS[judged.role]} [{judged.severity}] {visible(judged.finding.title)} ({judged.id})"
    return ["", head, *(f"    {visible(str(evidence))}" for evidence in judged.finding.evidence)]


def _summary(report: Report) -> str:
    counts = {status: sum(outcome.status is status for outcome in report.outcomes) for status in Status}
    causes = report.verdict.root_causes
    verdict = f"root cause: {', '.join(causes)}" if causes else "no cause of an outage found"
    return f"{verdict}; checks: " + ", ".join(f"{count} {status}" for status, count in counts.items() if count)
