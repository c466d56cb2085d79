"""A certificate was renewed, and the program that uses it was not restarted.

The file is valid again, the process still holds what it read at its start: expiry errors go on in the logs after the
file was written. Newer versions read leafs of the API server and etcd again by themselves, kubeconfigs and CA files
need a restart. Restarting the kubelet or deleting the mirror Pod restarts nothing.

Fix: move the manifest out of the directory for more than 20 seconds and back, or `crictl stop` the container.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.live import moment
from manifests.logs import Line
from manifests.messages import CONTROL_PLANE, said
from manifests.node import Node
from manifests.pki.certificates import utc
from manifests.pki.credentials import Credential, credentials
from manifests.started import started

SEVERITY = Severity.CRITICAL
EXPIRED = r"certificate has expired"
PROGRAMS = {"controller-manager.conf": "kube-controller-manager", "scheduler.conf": "kube-scheduler"}


def find(node: Node) -> Iterator[Finding]:
    running = started(node)
    if not running:
        raise EvidenceMissing("when the programs were started is not known: no container log that begins with a start")
    errors = [(at, line) for line in said(node, EXPIRED, *CONTROL_PLANE, "kubelet") if (at := moment(line.time))]
    for program, stale in _by_program(node, running).items():
        newest = max(stale, key=lambda credential: _written(node, credential))
        after = [line for at, line in errors if at > _written(node, newest)]
        if after:
            yield _finding(node, program, running[program], newest, after[-1])


def _by_program(node: Node, running: Mapping[str, datetime]) -> dict[str, list[Credential]]:
    """Valid certificates whose file is younger than the process that reads it, by program."""
    found: dict[str, list[Credential]] = {}
    for credential in credentials(node):
        program = PROGRAMS.get(credential.reader, credential.reader)
        certificate = credential.certificate
        if certificate is None or program not in running:
            continue
        valid = certificate.not_before <= node.at <= certificate.not_after
        if valid and running[program] < _written(node, credential):
            found.setdefault(program, []).append(credential)
    return found


def _written(node: Node, credential: Credential) -> datetime:
    return datetime.fromtimestamp(node.entry(credential.path).mtime, UTC)


def _finding(node: Node, program: str, begun: datetime, credential: Credential, line: Line) -> Finding:
    written = utc(_written(node, credential))
    return Finding(
        f"{program} runs since {utc(begun)} and has not read {credential.path} of {written}",
        (Evidence(credential.path, None, f"written {written}, valid"), line.evidence),
        severity=max(credential.loss, Severity.ERROR),
        layer=credential.layer,
        fix=Fix("drtool fix renewed-not-reloaded", f"restarts {program}'s container, which reads the file again"),
    )
