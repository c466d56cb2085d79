"""Nodes, namespaces, leases, events, and what carries configuration."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from snapshots.registry.objects import at
from snapshots.registry.tables.cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    count,
    dicts,
    field,
    number,
    since,
    text,
)

ROLE_LABEL, OLD_ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"


def node_status(node: dict[str, Any], _: datetime) -> str:
    ready = next((each for each in dicts(at(node, "status", "conditions")) if each.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    return ",".join([*words, "SchedulingDisabled"] if at(node, "spec", "unschedulable") else words)


def roles(node: dict[str, Any], _: datetime) -> str:
    labels = at(node, "metadata", "labels") or {}
    named = {key.removeprefix(ROLE_LABEL) for key in labels if key.startswith(ROLE_LABEL)}
    named |= {str(labels.get(OLD_ROLE_LABEL) or "")}
    return ",".join(sorted(filter(None, named))) or NONE


def internal_ip(node: dict[str, Any], _: datetime) -> str:
    return _address(node, "InternalIP")


def external_ip(node: dict[str, Any], _: datetime) -> str:
    return _address(node, "ExternalIP")


def _address(node: dict[str, Any], kind: str) -> str:
    found = (each.get("address") for each in dicts(at(node, "status", "addresses")) if each.get("type") == kind)
    return text(next(found, None))


def kernel(node: dict[str, Any], _: datetime) -> str:
    info = at(node, "status", "nodeInfo") or {}
    architecture = f" ({info['architecture']})" if info.get("architecture") else ""
    return text(info.get("kernelVersion"), UNKNOWN) + architecture


def last_seen(event: dict[str, Any], now: datetime) -> str:
    series = at(event, "series")
    if series:
        return since(series.get("lastObservedTime"), now)
    return since(event.get("lastTimestamp"), now) if event.get("lastTimestamp") else first_seen(event, now)


def first_seen(event: dict[str, Any], now: datetime) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"), now)


def event_object(event: dict[str, Any], _: datetime) -> str:
    kind, name = at(event, "involvedObject", "kind"), at(event, "involvedObject", "name")
    return f"{str(kind or '').lower()}/{name or ''}" if name else str(kind or "")


def event_source(event: dict[str, Any], _: datetime) -> str:
    component = at(event, "source", "component") or event.get("reportingComponent")
    host = at(event, "source", "host") or event.get("reportingInstance")
    return ", ".join(str(part) for part in (component, host) if part)


def event_count(event: dict[str, Any], _: datetime) -> str:
    return str(at(event, "series", "count") or event.get("count") or 1)


def message(event: dict[str, Any], _: datetime) -> str:
    return str(event.get("message") or "").strip()


INFO = ("status", "nodeInfo")

COLUMNS: dict[str, tuple[Column, ...]] = {
    "Node": (
        NAME,
        Column("STATUS", node_status),
        Column("ROLES", roles),
        AGE,
        Column("VERSION", field(*INFO, "kubeletVersion", empty="")),
        Column("INTERNAL-IP", internal_ip, wide=True),
        Column("EXTERNAL-IP", external_ip, wide=True),
        Column("OS-IMAGE", field(*INFO, "osImage", empty=UNKNOWN), wide=True),
        Column("KERNEL-VERSION", kernel, wide=True),
        Column("CONTAINER-RUNTIME", field(*INFO, "containerRuntimeVersion", empty=UNKNOWN), wide=True),
    ),
    "Namespace": (NAME, Column("STATUS", field("status", "phase", empty="")), AGE),
    "ConfigMap": (NAME, Column("DATA", count(("data",), ("binaryData",))), AGE),
    "Secret": (NAME, Column("TYPE", field("type", empty="")), Column("DATA", count(("data",))), AGE),
    "Lease": (NAME, Column("HOLDER", field("spec", "holderIdentity", empty="")), AGE),
    "Event": (
        Column("LAST SEEN", last_seen),
        Column("TYPE", field("type", empty="")),
        Column("REASON", field("reason", empty="")),
        Column("OBJECT", event_object),
        Column("SUBOBJECT", field("involvedObject", "fieldPath", empty=""), wide=True),
        Column("SOURCE", event_source, wide=True),
        Column("MESSAGE", message),
        Column("FIRST SEEN", first_seen, wide=True),
        Column("COUNT", event_count, wide=True),
        Column("NAME", field("metadata", "name", empty=""), wide=True),
    ),
    "PriorityClass": (
        NAME,
        Column("VALUE", number("value")),
        Column("GLOBAL-DEFAULT", lambda body, _: "true" if body.get("globalDefault") else "false"),
        AGE,
        Column("PREEMPTIONPOLICY", field("preemptionPolicy", empty="")),
    ),
    "RuntimeClass": (NAME, Column("HANDLER", field("handler", empty="")), AGE),
}
