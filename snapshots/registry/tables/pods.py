"""A Pod's READY, STATUS and RESTARTS: printPod in Kubernetes' printers, step by step."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from snapshots.registry.objects import at
from snapshots.registry.tables.cells import NONE, dicts, since


class Summary(NamedTuple):
    ready: int
    total: int
    reason: str
    restarts: int
    last_restart: str
    """The time of the newest, "" for none."""


class Counted(NamedTuple):
    """What a walk over container statuses came to; `reason` is empty where it says nothing."""

    reason: str = ""
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""
    sidecar_restarts: int = 0
    sidecar_last: str = ""
    initializing: bool = False


def summary(pod: dict[str, Any]) -> Summary:
    status = at(pod, "status") or {}
    sidecars = {each.get("name") for each in _inits(pod) if each.get("restartPolicy") == "Always"}
    total = len(dicts(at(pod, "spec", "containers"))) + len(sidecars)
    phase = str(status.get("phase") or "")
    conditions = dicts(status.get("conditions"))
    gated = any(each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in conditions)
    reason = "SchedulingGated" if gated else status.get("reason") or phase
    init = _init(pod, sidecars)
    ready, restarts, last = init.ready, init.restarts, init.last_restart
    reason = init.reason or reason
    if not init.initializing or _true(conditions, "Initialized"):
        main = _main(status, reason, _true(conditions, "Ready"))
        reason, ready = main.reason, ready + main.ready
        restarts = init.sidecar_restarts + main.restarts
        last = max(init.sidecar_last, main.last_restart)
    if at(pod, "metadata", "deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            reason = "Terminating"
    return Summary(ready, total, reason, restarts, last)


def _inits(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return dicts(at(pod, "spec", "initContainers"))


def _true(conditions: list[dict[str, Any]], kind: str) -> bool:
    return any(each.get("type") == kind and each.get("status") == "True" for each in conditions)


def _init(pod: dict[str, Any], sidecars: set[Any]) -> Counted:
    """Init containers, up to the first that is not done."""
    found = Counted()
    for place, each in enumerate(dicts(at(pod, "status", "initContainerStatuses"))):
        restarts, last = int(each.get("restartCount") or 0), _finished(each)
        sidecar = each.get("name") in sidecars
        found = found._replace(
            restarts=found.restarts + restarts,
            last_restart=max(found.last_restart, last),
            sidecar_restarts=found.sidecar_restarts + (restarts if sidecar else 0),
            sidecar_last=max(found.sidecar_last, last if sidecar else ""),
        )
        terminated = at(each, "state", "terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and each.get("started"):
            found = found._replace(ready=found.ready + bool(each.get("ready")))
            continue
        waiting = at(each, "state", "waiting", "reason")
        if terminated is not None:
            reason = f"Init:{_ended(terminated)}"
        elif waiting and waiting != "PodInitializing":
            reason = f"Init:{waiting}"
        else:
            reason = f"Init:{place}/{len(_inits(pod))}"
        return found._replace(reason=reason, initializing=True)
    return found


def _main(status: dict[str, Any], reason: str, pod_ready: bool) -> Counted:
    found, error, running = Counted(reason), "", False
    for each in reversed(dicts(status.get("containerStatuses"))):
        found = found._replace(
            restarts=found.restarts + int(each.get("restartCount") or 0),
            last_restart=max(found.last_restart, _finished(each)),
        )
        terminated = at(each, "state", "terminated")
        if at(each, "state", "waiting", "reason"):
            found = found._replace(reason=at(each, "state", "waiting", "reason"))
        elif terminated is not None:
            found = found._replace(reason=_ended(terminated))
            error = found.reason if terminated.get("exitCode") else error
        elif each.get("ready") and at(each, "state", "running") is not None:
            running, found = True, found._replace(ready=found.ready + 1)
    if found.reason == "Completed":
        if running and pod_ready:
            return found._replace(reason="Running")
        return found._replace(reason=error or ("NotReady" if running else found.reason))
    return found


def _ended(terminated: dict[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    signal = terminated.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{terminated.get('exitCode', 0)}"


def _finished(container: dict[str, Any]) -> str:
    return at(container, "lastState", "terminated", "finishedAt") or ""


def ready(pod: dict[str, Any], _: datetime) -> str:
    found = summary(pod)
    return f"{found.ready}/{found.total}"


def status(pod: dict[str, Any], _: datetime) -> str:
    return summary(pod).reason


def restarts(pod: dict[str, Any], now: datetime) -> str:
    found = summary(pod)
    if not found.restarts or not found.last_restart:
        return str(found.restarts)
    return f"{found.restarts} ({since(found.last_restart, now)} ago)"


def gates(pod: dict[str, Any], _: datetime) -> str:
    asked = dicts(at(pod, "spec", "readinessGates"))
    conditions = dicts(at(pod, "status", "conditions"))
    true = sum(_true(conditions, str(gate.get("conditionType"))) for gate in asked)
    return f"{true}/{len(asked)}" if asked else NONE
