"""The plan that repairs a finding, or all root causes that have one right answer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from drtool.commands.carrying import host
from drtool.commands.check import Report, check
from drtool.commands.unread import cannot_tell
from drtool.core.check import EvidenceMissing
from drtool.core.errors import CannotTell, DrtoolError, UsageError
from drtool.core.plan import Plan
from drtool.core.report import Status
from drtool.host.machine import Host
from drtool.host.root import Root
from drtool.plans import site
from drtool.plans.fix import Etcd
from drtool.plans.mend import Found, mend
from drtool.plans.rebuild import Standing
from manifests.identity import cluster_name
from manifests.node import Node

ASK_ETCD = {"etcd-nospace", "etcd-membership-stale"}


def plan(root: Root, name: str, at: datetime | None = None) -> Plan[Host]:
    """For the check `name`, or for every root cause. Raises UsageError where it found nothing."""
    report = check(root, at)
    found = _found(report, [name] if name else report.verdict.root_causes)
    if not found and report.unread is not None:
        raise cannot_tell(root.directory, report.unread)
    if not report.is_node:
        raise CannotTell(f"{root.directory} is no kubeadm node: {report.node.layout}")
    if name and not found:
        outcome = next((one for one in report.outcomes if one.id == name), None)
        if outcome is None:
            raise UsageError(f"there is no check {name}", "drtool explain lists them")
        raise UsageError(f"{name} has found nothing to fix here ({outcome.status}{_why(outcome.reason)})")
    if not found:
        raise UsageError("no root cause was found: there is nothing to fix", "drtool fix ID repairs a single finding")
    etcd = _etcd(root, report.node) if root.live and ASK_ETCD & {one.id for one in found} else Etcd()
    identity = site.plan_id("fix", datetime.now(UTC))
    try:
        draft = mend(report.node, identity, found, etcd)
    except EvidenceMissing as gap:
        raise CannotTell(f"the node cannot be read well enough for a plan: {gap}") from gap
    return Plan(identity, draft.title, cluster_name(report.node), draft.steps, draft.by_hand)


def _why(reason: str) -> str:
    return f": {reason}" if reason else ""


def _found(report: Report, names: Iterable[str]) -> tuple[Found, ...]:
    outcomes = {one.id: one for one in report.outcomes if one.status is Status.FAILED}
    explained = {one.id: one.explanation for one in report.checks}
    return tuple(Found(name, outcomes[name].findings, explained[name]) for name in names if name in outcomes)


def _etcd(root: Root, node: Node) -> Etcd:
    """Asks each member of the list for its status; a list that nobody gives leaves both sides empty."""
    machine = host(root, "")
    try:
        members = site.etcd_access(node).ask(machine, lambda etcd: etcd.members())
    except DrtoolError:
        return Etcd()
    answering, silent = [], []
    for member in members:
        try:
            site.etcd_access(node, *member.client_urls).ask(machine, lambda etcd: etcd.status())
            answering.append(member.client_urls[0])
        except (DrtoolError, IndexError):
            silent.append(Standing(f"{member.id:x}", member.name, member.peer_urls))
    return Etcd(tuple(answering), tuple(silent))
