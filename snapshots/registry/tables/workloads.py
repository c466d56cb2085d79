"""Pods and what makes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from snapshots.registry.objects import at
from snapshots.registry.tables import pods
from snapshots.registry.tables.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    containers,
    count,
    dicts,
    elapsed,
    field,
    labels,
    moment,
    number,
    ratio,
    selector,
    since,
    some,
    words,
)

TEMPLATE = ("spec", "template", "spec")
JOB_STATES = {
    "Complete": "Complete",
    "Failed": "Failed",
    "Suspended": "Suspended",
    "FailureTarget": "FailureTarget",
    "SuccessCriteriaMet": "SuccessCriteriaMet",
}


def job_status(job: dict[str, Any], _: datetime) -> str:
    conditions = dicts(at(job, "status", "conditions"))
    true = {str(each.get("type")) for each in conditions if each.get("status") == "True"}
    ended = next((state for state in ("Complete", "Failed") if state in true), None)
    if ended is None and at(job, "metadata", "deletionTimestamp"):
        return "Terminating"
    return ended or next((state for state in JOB_STATES if state in true), "Running")


def completions(job: dict[str, Any], _: datetime) -> str:
    done, wanted = at(job, "status", "succeeded") or 0, at(job, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = at(job, "spec", "parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def job_duration(job: dict[str, Any], now: datetime) -> str:
    started = moment(at(job, "status", "startTime"))
    ended = moment(at(job, "status", "completionTime")) or now
    return elapsed((ended - started).total_seconds()) if started else ""


def last_schedule(job: dict[str, Any], now: datetime) -> str:
    return since(at(job, "status", "lastScheduleTime"), now, NONE)


def suspended(job: dict[str, Any], _: datetime) -> str:
    return words(at(job, "spec", "suspend"))


def metrics(scaler: dict[str, Any], _: datetime) -> str:
    """formatHPAMetrics: current over target of each metric, the first two."""
    specs = dicts(at(scaler, "spec", "metrics"))
    statuses = dicts(at(scaler, "status", "currentMetrics"))
    listed = [_metric(spec, statuses[place] if place < len(statuses) else {}) for place, spec in enumerate(specs)]
    return some(listed, 2, ", ") if listed else NONE


def _metric(spec: dict[str, Any], status: dict[str, Any]) -> str:
    kind = str(spec.get("type", ""))
    key = kind[:1].lower() + kind[1:]
    target, current = at(spec, key, "target") or {}, at(status, key, "current") or {}
    if kind in ("Resource", "ContainerResource"):
        name = at(spec, key, "name")
        if target.get("averageValue") is not None:
            return f"{name}: {current.get('averageValue', '<unknown>')}/{target['averageValue']}"
        percent = target.get("averageUtilization")
        now = current.get("averageUtilization")
        return f"{name}: {'<unknown>' if now is None else f'{now}%'}/{'<auto>' if percent is None else f'{percent}%'}"
    if kind == "Pods":
        return f"{current.get('averageValue', '<unknown>')}/{target.get('averageValue')}"
    if kind not in ("External", "Object"):
        return "<unknown type>"
    if target.get("averageValue") is not None:
        return f"{current.get('averageValue', '<unknown>')}/{target['averageValue']} (avg)"
    return f"{current.get('value', '<unknown>')}/{target.get('value')}"


def reference(scaler: dict[str, Any], _: datetime) -> str:
    target = at(scaler, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def controller(revision: dict[str, Any], _: datetime) -> str:
    owner = next((each for each in dicts(at(revision, "metadata", "ownerReferences")) if each.get("controller")), None)
    if owner is None:
        return NONE
    group = str(owner.get("apiVersion", "")).rpartition("/")[0]
    return f"{str(owner.get('kind', '')).lower()}{'.' + group if group else ''}/{owner.get('name')}"


def _replicas(*last: Column) -> tuple[Column, ...]:
    return (
        NAME,
        Column("DESIRED", number("spec", "replicas")),
        Column("CURRENT", number("status", "replicas")),
        Column("READY", number("status", "readyReplicas")),
        AGE,
        *containers(*TEMPLATE),
        *last,
    )


SELECTOR = Column("SELECTOR", selector("spec", "selector"), wide=True)
READY = Column("READY", ratio(("status", "readyReplicas"), ("spec", "replicas")))

COLUMNS: dict[str, tuple[Column, ...]] = {
    "Pod": (
        NAME,
        Column("READY", pods.ready),
        Column("STATUS", pods.status),
        Column("RESTARTS", pods.restarts),
        AGE,
        Column("IP", field("status", "podIPs", 0, "ip"), wide=True),
        Column("NODE", field("spec", "nodeName"), wide=True),
        Column("NOMINATED NODE", field("status", "nominatedNodeName"), wide=True),
        Column("READINESS GATES", pods.gates, wide=True),
    ),
    "PodTemplate": (
        NAME,
        *(column._replace(wide=False) for column in containers("template", "spec")),
        Column("POD LABELS", labels("template", "metadata", "labels")),
    ),
    "Deployment": (
        NAME,
        READY,
        Column("UP-TO-DATE", number("status", "updatedReplicas")),
        Column("AVAILABLE", number("status", "availableReplicas")),
        AGE,
        *containers(*TEMPLATE),
        SELECTOR,
    ),
    "ReplicaSet": _replicas(SELECTOR),
    "ReplicationController": _replicas(Column("SELECTOR", labels("spec", "selector"), wide=True)),
    "StatefulSet": (NAME, READY, AGE, *containers(*TEMPLATE)),
    "DaemonSet": (
        NAME,
        Column("DESIRED", number("status", "desiredNumberScheduled")),
        Column("CURRENT", number("status", "currentNumberScheduled")),
        Column("READY", number("status", "numberReady")),
        Column("UP-TO-DATE", number("status", "updatedNumberScheduled")),
        Column("AVAILABLE", number("status", "numberAvailable")),
        Column("NODE SELECTOR", labels(*TEMPLATE, "nodeSelector")),
        AGE,
        *containers(*TEMPLATE),
        SELECTOR,
    ),
    "Job": (
        NAME,
        Column("STATUS", job_status),
        Column("COMPLETIONS", completions),
        Column("DURATION", job_duration),
        AGE,
        *containers(*TEMPLATE),
        SELECTOR,
    ),
    "CronJob": (
        NAME,
        Column("SCHEDULE", field("spec", "schedule", empty="")),
        Column("TIMEZONE", field("spec", "timeZone")),
        Column("SUSPEND", suspended),
        Column("ACTIVE", count(("status", "active"))),
        Column("LAST SCHEDULE", last_schedule),
        AGE,
        *containers("spec", "jobTemplate", *TEMPLATE),
        Column("SELECTOR", selector("spec", "jobTemplate", "spec", "selector"), wide=True),
    ),
    "ControllerRevision": (
        NAME,
        Column("CONTROLLER", controller),
        Column("REVISION", number("revision")),
        AGE,
    ),
    "HorizontalPodAutoscaler": (
        NAME,
        Column("REFERENCE", reference),
        Column("TARGETS", metrics),
        Column("MINPODS", field("spec", "minReplicas", empty=UNSET)),
        Column("MAXPODS", number("spec", "maxReplicas")),
        Column("REPLICAS", number("status", "currentReplicas")),
        AGE,
    ),
}
