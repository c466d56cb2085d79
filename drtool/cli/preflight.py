"""`drtool preflight`"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from drtool.cli._output import emit, output_option, visible
from drtool.cli._types import ANY_PATH
from drtool.core.report import Severity, Status
from drtool.host.root import Root

if TYPE_CHECKING:
    from drtool.commands.preflight import Item, Preflight

LACKING = 4
WORDS = {Status.PASSED: "ok", Status.SKIPPED: "-", Status.UNKNOWN: "unknown", Status.BROKEN: "crashed"}


@click.command(epilog="Example: drtool preflight   or   drtool preflight --root /mnt/a --root /mnt/b")
@click.option("--root", "roots", type=ANY_PATH, multiple=True, help="A host's tree, or several.")
@click.option("--fix", is_flag=True, help="Print the plan that puts right what has one right answer.")
@click.option("--apply", is_flag=True, help="With --fix: carry the plan out, after the host's name is typed.")
@click.option("--yes", is_flag=True, help="With --apply: do not ask.")
@output_option
def command(roots: tuple[Path, ...], fix: bool, apply: bool, yes: bool, output: str) -> int:
    """What this host lacks before kubeadm makes a node of it.

    Exit status 4 where kubeadm or the kubelet would refuse.
    """
    from drtool.commands import preflight

    places = [Root(root.resolve()) for root in roots or (Path("/"),)]
    if fix:
        from drtool.cli._plan import Answers, present

        answers = Answers(root=places[0].directory, apply=apply, yes=yes)
        present(preflight.plan(places[0]), answers, output, "drtool preflight --fix --apply")
        return 0
    found = preflight.preflight(places)
    emit(preflight.as_data(found), output, lambda: as_text(found))
    return 0 if all(one.good for one in found) else LACKING


def as_text(found: Sequence[Preflight]) -> str:
    lines = []
    for one in found:
        lines.append(f"{one.node.hostname or 'unnamed host'}:")
        lines += [line for item in one.items for line in _lines(item)]
    for finding in found[0].shared:
        lines.append(f"  ERROR    {visible(finding.title)}")
        lines += [f"             {visible(str(evidence))}" for evidence in finding.evidence]
    return "\n".join(lines)


def _lines(item: Item) -> list[str]:
    known = f" [kubeadm: {', '.join(item.kubeadm)}]" if item.kubeadm else ""
    if item.outcome.status is not Status.FAILED:
        words = WORDS[item.outcome.status]
        reason = f": {visible(item.outcome.reason)}" if item.outcome.reason else ""
        return [f"  {words:8} {item.check.id}{reason}"]
    lines = []
    for finding in item.outcome.findings:
        severity = item.check.severity if finding.severity is None else finding.severity
        word = "ERROR" if severity >= Severity.ERROR else str(severity)
        lines.append(f"  {word:8} {visible(finding.title)} ({item.check.id}){known}")
        lines += [f"             {visible(str(evidence))}" for evidence in finding.evidence]
    return lines
