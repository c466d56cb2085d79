"""What a check says: findings with their evidence, and outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Severity(IntEnum):
    """How bad a finding is; ordered, so that `--fail-on` is a comparison."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    CRITICAL = 3

    def __str__(self) -> str:
        return self.name.lower()


class Status(StrEnum):
    """What became of one check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"
    BROKEN = "broken"


class Role(StrEnum):
    """What a finding is to the outage."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    RISK = "risk"


class Layer(IntEnum):
    """Where a finding lies, lowest first: the order of blame and the order to repair."""

    HOST = 0
    RUNTIME = 1
    KUBELET = 2
    ETCD = 3
    APISERVER = 4
    CONTROLLERS = 5
    VIP = 6
    CNI = 7
    OBJECTS = 8


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of one file that a person can go and look at.

    `path` is the node's own, without the `--root` prefix; `line` counts from 1, None where a file as a whole speaks.
    """

    path: str
    line: int | None = None
    text: str = ""

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.text}" if self.text else place


@dataclass(frozen=True, slots=True)
class Fix:
    """The command that repairs a finding, and what it does in one sentence."""

    command: str
    summary: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, in one line, with both sides of the contradiction as evidence.

    `severity` and `layer` are given only where this finding differs from its check's own.
    """

    title: str
    evidence: tuple[Evidence, ...] = ()
    severity: Severity | None = None
    layer: Layer | None = None
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check came to. `reason` says why it was skipped, unknown or broken."""

    id: str
    status: Status
    findings: tuple[Finding, ...] = ()
    reason: str = ""
