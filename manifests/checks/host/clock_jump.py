"""The host's clock jumped back, or runs apart from its peers'.

Lines of a journal stand in the order in which they were written; a time that goes back shows a clock that was set.
Certificates made while it was ahead are then not valid yet, leases and etcd's elections are upset. One jump forward is
what a machine shows that was suspended or switched off, and is left out. etcd itself warns when a member's clock
differs.

Fix: run chrony or systemd-timesyncd on every node and let it step the clock once; then look at what was issued
meanwhile.
"""

import re
from collections.abc import Iterator
from datetime import timedelta

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.live import moment
from manifests.logs import Line
from manifests.messages import JOURNALS, said
from manifests.node import Node
from manifests.pki.certificates import utc
from manifests.pki.validity import SKEW, cas, leaves

SEVERITY = Severity.WARNING
EXPLAINS = ("cert-not-yet-valid", "renewed-not-reloaded")
BACK = timedelta(minutes=5)
EARLY = re.compile(r"not yet valid: current time \S+ is before")
DRIFT = r"clock difference against peer|prober found high clock drift|high clock drift"


def find(node: Node) -> Iterator[Finding]:
    journals = {unit: lines for unit in JOURNALS if (lines := node.journal(unit))}
    drift = list(said(node, DRIFT, "etcd"))
    if not drift and not any(line.time for lines in journals.values() for line in lines):
        raise EvidenceMissing("no journal with times, and no line of etcd's about clocks")
    for unit, lines in journals.items():
        yield from _steps(node, unit, lines)
    if drift:
        yield Finding("etcd finds its clock apart from another member's", (drift[-1].evidence,))


def _steps(node: Node, unit: str, lines: tuple[Line, ...]) -> Iterator[Finding]:
    before = None
    for number, line in enumerate(lines):
        now = moment(line.time) if line.time else None
        if now is None:
            continue
        if before is not None and before[0] - now > BACK:
            harm = _harm(node, lines[number:])
            yield Finding(
                f"The clock went back from {utc(before[0])} to {utc(now)} ({unit}'s journal)",
                (before[1].evidence, line.evidence, *harm),
                severity=Severity.CRITICAL if harm else Severity.WARNING,
            )
        before = now, line


def _harm(node: Node, after: tuple[Line, ...]) -> tuple[Evidence, ...]:
    """Certificates that are refused because of it: by a log line after the step, or by the moment that is judged by."""
    refused = [line.evidence for line in after if EARLY.search(line.text)]
    try:
        early = [
            t.certificate.evidence for t in (*cas(node), *leaves(node)) if t.certificate.not_before > node.at + SKEW
        ]
    except EvidenceMissing:
        early = []
    return (*refused[-1:], *early[:1])
