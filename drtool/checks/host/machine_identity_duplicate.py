"""Nodes of one cluster need hostnames, machine ids, product ids and hardware addresses of their own.

Cloned machines join as one node whose entry flaps, or share what a network plugin derives from the machine id. Only
several nodes judged together tell.

Fix: a unique hostname, `rm /etc/machine-id && systemd-machine-id-setup`, then reset and join the clone again.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from manifests.host.clones import compare

SEVERITY = Severity.ERROR
EXPLAINS = ("podcidr-duplicate", "node-name-mismatch")


def find(case: Case) -> Iterator[Finding]:
    if not case.others:
        raise NotApplicable("needs several nodes: give --root more than once")
    for other in case.others:
        yield from compare((case.node, other))
