"""`drtool check`"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import click

from drtool.cli._output import emit, output_option, visible
from drtool.cli._types import ANY_PATH, Moment
from drtool.commands.check import Report, check_together, dotted, together_as_data
from drtool.commands.check_db import DbReport, check_db
from drtool.commands.check_db import as_data as db_as_data
from drtool.commands.tree import opened
from drtool.commands.unread import cannot_tell
from drtool.core.causes import Judged
from drtool.core.errors import CannotTell
from drtool.core.report import Outcome, Role, Severity, Status
from manifests.node import EXPIRY_DAYS

MARKS = {Role.CAUSE: "CAUSE", Role.CONSEQUENCE: "follows", Role.RISK: "risk"}


@click.command(epilog="Example: drtool check --root /mnt/cp-1 --at 2026-12-15T00:00:00Z")
@click.option(
    "--root",
    "roots",
    type=ANY_PATH,
    multiple=True,
    default=[Path("/")],
    help="A node's tree, or a bundle of `drtool collect`, packed or not; several are judged together.",
)
@click.option("--db", type=ANY_PATH, help="Judge a snapshot or a raw db alone, without a node.")
@click.option("--at", type=Moment(), help="Judge as of this time; else when the bundle was taken, else now.")
@click.option(
    "--fail-on",
    type=click.Choice([str(severity) for severity in Severity]),
    default="error",
    show_default=True,
    help="Exit 4 when a finding is at least this bad.",
)
@click.option(
    "--expiry-days",
    type=click.IntRange(min=0),
    default=EXPIRY_DAYS,
    show_default=True,
    help="Warn of certificates that end within so many days.",
)
@click.option("--no-probe", is_flag=True, help="Read files only: ask no endpoint, runtime or unit of this machine.")
@output_option
def command(
    roots: tuple[Path, ...],
    db: Path | None,
    at: datetime | None,
    fail_on: str,
    expiry_days: int,
    no_probe: bool,
    output: str,
) -> int:
    """Read the node and name root causes first, then consequences and risks."""
    if db is not None:
        return _db(db, fail_on, output)
    with ExitStack() as stack:
        trees = [stack.enter_context(opened(root)) for root in roots]
        reports = check_together(trees, at, not no_probe, expiry_days)
    emit(together_as_data(reports), output, lambda: "\n\n".join(as_text(report) for report in reports))
    worst = max((severity for report in reports if (severity := report.worst()) is not None), default=None)
    if worst is not None and worst >= Severity[fail_on.upper()]:
        return 4
    for root, report in zip(roots, reports, strict=True):
        if report.unread is not None:
            raise cannot_tell(root, report.unread)
        if not report.is_node:
            raise CannotTell(
                f"{root} is no node that drtool knows (layout {report.node.layout})",
                "--root takes the directory that stands for the / of a node made by kubeadm",
            )
    return 3 if any(report.broken() for report in reports) else 0


def _db(path: Path, fail_on: str, output: str) -> int:
    report = check_db(path)
    emit(db_as_data(report), output, lambda: db_as_text(report))
    worst = max((judged.severity for judged in report.verdict.findings), default=None)
    if worst is not None and worst >= Severity[fail_on.upper()]:
        return 4
    return 3 if any(outcome.status is Status.BROKEN for outcome in report.outcomes) else 0


def db_as_text(report: DbReport) -> str:
    lines = [f"{report.database.path}: revision {report.database.revision}, {report.database.used} bytes in use"]
    for judged in report.verdict.findings:
        lines += _lines(judged)
    return "\n".join([*lines, "", _summary(report.outcomes, report.verdict.root_causes)])


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
    lines.append(_summary(report.outcomes, report.verdict.root_causes))
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


def _summary(outcomes: tuple[Outcome, ...], causes: tuple[str, ...]) -> str:
    counts = {status: sum(outcome.status is status for outcome in outcomes) for status in Status}
    verdict = f"root cause: {', '.join(causes)}" if causes else "no cause of an outage found"
    return f"{verdict}; checks: " + ", ".join(f"{count} {status}" for status, count in counts.items() if count)
