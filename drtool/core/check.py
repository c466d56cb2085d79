"""What a check is, how the checks of a package are found, and how they are run.

A check is a module: its name is the id (underscores for hyphens), its docstring the explanation, `SEVERITY` its
severity, `find(subject)` its one function. It may also hold `EXPLAINS` (ids that its finding makes inevitable) and
`SYMPTOM = True` (it reads what a running or crashed process says, so that any fault below or beside it explains it).
The folder it lies in is its layer.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from drtool.core.report import Finding, Layer, Outcome, Severity, Status


class EvidenceMissing(Exception):
    """What a check needs to read is not there: its outcome is unknown, never passed."""


class NotApplicable(Exception):
    """The check is about something that this subject does not have: skipped."""


@dataclass(frozen=True, slots=True)
class Check:
    id: str
    layer: Layer
    severity: Severity
    explanation: str
    find: Callable[[Any], Iterator[Finding]]
    explains: tuple[str, ...] = ()
    symptom: bool = False
    folder: str = ""


LAYERS = {
    "layout": Layer.HOST,
    "host": Layer.HOST,
    "runtime": Layer.RUNTIME,
    "kubelet": Layer.KUBELET,
    "etcd": Layer.ETCD,
    "apiserver": Layer.APISERVER,
    "controllers": Layer.CONTROLLERS,
    "vip": Layer.VIP,
    "cni": Layer.CNI,
    "objects": Layer.OBJECTS,
}


def load(package: ModuleType) -> tuple[Check, ...]:
    """Every check below `package`, by layer and then by id."""
    checks = [_check(importlib.import_module(name)) for name in _modules(package)]
    return tuple(sorted(checks, key=lambda check: (check.layer, check.id)))


def _modules(package: ModuleType) -> Iterator[str]:
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if found.ispkg:
            yield from _modules(importlib.import_module(found.name))
        elif not found.name.rpartition(".")[2].startswith("_"):
            yield found.name


def _check(module: ModuleType) -> Check:
    _, folder, name = module.__name__.rsplit(".", 2)
    return Check(
        id=name.replace("_", "-"),
        layer=LAYERS[folder],
        severity=module.SEVERITY,
        explanation=(module.__doc__ or "").strip(),
        find=module.find,
        explains=getattr(module, "EXPLAINS", ()),
        symptom=getattr(module, "SYMPTOM", False),
        folder=folder,
    )


def run(checks: Iterable[Check], subject: object) -> tuple[Outcome, ...]:
    """Run each check on the subject; one that crashes is `broken`, and the run goes on."""
    return tuple(run_one(check, subject) for check in checks)


def run_one(check: Check, subject: object) -> Outcome:
    """Findings yielded before a gap in the evidence count."""
    findings: list[Finding] = []
    status, reason = Status.PASSED, ""
    try:
        for finding in check.find(subject):
            findings.append(finding)  # noqa: PERF402 - kept one by one: what came before a gap counts
    except EvidenceMissing as gap:
        status, reason = Status.UNKNOWN, str(gap)
    except NotApplicable as gap:
        status, reason = Status.SKIPPED, str(gap)
    except Exception as crash:  # noqa: BLE001 - a crashing check must not take the others with it
        status, reason = Status.BROKEN, f"{type(crash).__name__}: {crash}"
    if findings and status is not Status.BROKEN:
        status = Status.FAILED
    return Outcome(check.id, status, tuple(findings), reason)
