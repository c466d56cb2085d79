"""Roles, quotas, disruption budgets, admission, flow control, and the API's own kinds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from snapshots.registry.objects import at
from snapshots.registry.tables.cells import (
    AGE,
    CREATED_AT,
    NAME,
    NONE,
    UNSET,
    Column,
    count,
    dicts,
    elapsed,
    field,
    number,
    text,
)


def role(binding: dict[str, Any], _: datetime) -> str:
    return f"{at(binding, 'roleRef', 'kind')}/{at(binding, 'roleRef', 'name')}"


def _subjects(binding: dict[str, Any], kind: str) -> str:
    named = (each for each in dicts(binding.get("subjects")) if each.get("kind") == kind)
    accounts = kind == "ServiceAccount"
    return ", ".join(
        f"{each.get('namespace', '')}/{each.get('name')}" if accounts else str(each.get("name")) for each in named
    )


def users(binding: dict[str, Any], _: datetime) -> str:
    return _subjects(binding, "User")


def groups(binding: dict[str, Any], _: datetime) -> str:
    return _subjects(binding, "Group")


def accounts(binding: dict[str, Any], _: datetime) -> str:
    return _subjects(binding, "ServiceAccount")


def _quota(body: dict[str, Any], limits: bool) -> str:
    hard, used = at(body, "status", "hard") or {}, at(body, "status", "used") or {}
    return ", ".join(
        f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard) if name.startswith("limits.") is limits
    )


def quota_requests(body: dict[str, Any], _: datetime) -> str:
    return _quota(body, limits=False)


def quota_limits(body: dict[str, Any], _: datetime) -> str:
    return _quota(body, limits=True)


def csr_condition(body: dict[str, Any], _: datetime) -> str:
    types = {str(each.get("type")) for each in dicts(at(body, "status", "conditions"))}
    words = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    words += ["Failed"] if "Failed" in types else []
    words += ["Issued"] if at(body, "status", "certificate") else []
    return ",".join(words)


def csr_duration(body: dict[str, Any], _: datetime) -> str:
    seconds = at(body, "spec", "expirationSeconds")
    return NONE if seconds is None else elapsed(seconds)


def crd_versions(body: dict[str, Any], _: datetime) -> str:
    listed = dicts(at(body, "spec", "versions"))
    return ",".join(f"{each.get('name')}{'(storage)' if each.get('storage') else ''}" for each in listed)


def crd_short_names(body: dict[str, Any], _: datetime) -> str:
    return ",".join(at(body, "spec", "names", "shortNames") or ())


def established(body: dict[str, Any], _: datetime) -> str:
    conditions = dicts(at(body, "status", "conditions"))
    found = next((each for each in conditions if each.get("type") == "Established"), {})
    return "true" if found.get("status") == "True" else "false"


def api_service(body: dict[str, Any], _: datetime) -> str:
    ref = at(body, "spec", "service")
    return f"{ref.get('namespace')}/{ref.get('name')}" if ref else "Local"


def available(body: dict[str, Any], _: datetime) -> str:
    conditions = dicts(at(body, "status", "conditions"))
    found = next((each for each in conditions if each.get("type") == "Available"), {})
    if not found:
        return "Unknown"
    status = str(found.get("status"))
    return status if status == "True" else f"{status} ({found.get('reason')})"


def missing_level(body: dict[str, Any], _: datetime) -> str:
    conditions = dicts(at(body, "status", "conditions"))
    found = next((each for each in conditions if each.get("type") == "Dangling"), {})
    return text(found.get("status"), "?")


def param_kind(body: dict[str, Any], _: datetime) -> str:
    asked = at(body, "spec", "paramKind")
    return f"{asked.get('apiVersion')}/{asked.get('kind')}" if asked else UNSET


def _limited(*path: str) -> tuple[str, ...]:
    return ("spec", "limited", *path)


def shares(body: dict[str, Any], _: datetime) -> str:
    kind = at(body, "spec", "type")
    return text(at(body, *_limited("nominalConcurrencyShares"))) if kind == "Limited" else NONE


BINDING = (
    NAME,
    Column("ROLE", role),
    AGE,
    Column("USERS", users, wide=True),
    Column("GROUPS", groups, wide=True),
    Column("SERVICEACCOUNTS", accounts, wide=True),
)
WEBHOOKS = (NAME, Column("WEBHOOKS", count(("webhooks",))), AGE)
QUEUING = _limited("limitResponse", "queuing")

COLUMNS: dict[str, tuple[Column, ...]] = {
    "ClusterRole": (NAME, CREATED_AT),
    "Role": (NAME, CREATED_AT),
    "ClusterRoleBinding": BINDING,
    "RoleBinding": BINDING,
    "LimitRange": (NAME, CREATED_AT),
    "ResourceQuota": (NAME, Column("REQUEST", quota_requests), Column("LIMIT", quota_limits), AGE),
    "PodDisruptionBudget": (
        NAME,
        Column("MIN AVAILABLE", field("spec", "minAvailable", empty="N/A")),
        Column("MAX UNAVAILABLE", field("spec", "maxUnavailable", empty="N/A")),
        Column("ALLOWED DISRUPTIONS", number("status", "disruptionsAllowed")),
        AGE,
    ),
    "CertificateSigningRequest": (
        NAME,
        AGE,
        Column("SIGNERNAME", field("spec", "signerName")),
        Column("REQUESTOR", field("spec", "username", empty="")),
        Column("REQUESTEDDURATION", csr_duration),
        Column("CONDITION", csr_condition),
    ),
    "ClusterTrustBundle": (NAME, Column("SIGNERNAME", field("spec", "signerName", empty=""))),
    "CustomResourceDefinition": (
        NAME,
        Column("SCOPE", field("spec", "scope", empty="")),
        Column("VERSIONS", crd_versions),
        CREATED_AT,
        Column("GROUP", field("spec", "group", empty=""), wide=True),
        Column("KIND", field("spec", "names", "kind", empty=""), wide=True),
        Column("SHORTNAMES", crd_short_names, wide=True),
        Column("ESTABLISHED", established, wide=True),
    ),
    "APIService": (NAME, Column("SERVICE", api_service), Column("AVAILABLE", available), AGE),
    "MutatingWebhookConfiguration": WEBHOOKS,
    "ValidatingWebhookConfiguration": WEBHOOKS,
    "ValidatingAdmissionPolicy": (
        NAME,
        Column("VALIDATIONS", count(("spec", "validations"))),
        Column("PARAMKIND", param_kind),
        AGE,
    ),
    "FlowSchema": (
        NAME,
        Column("PRIORITYLEVEL", field("spec", "priorityLevelConfiguration", "name", empty="")),
        Column("MATCHINGPRECEDENCE", number("spec", "matchingPrecedence")),
        Column("DISTINGUISHERMETHOD", field("spec", "distinguisherMethod", "type")),
        AGE,
        Column("MISSINGPL", missing_level),
    ),
    "PriorityLevelConfiguration": (
        NAME,
        Column("TYPE", field("spec", "type", empty="")),
        Column("NOMINALCONCURRENCYSHARES", shares),
        Column("QUEUES", field(*QUEUING, "queues")),
        Column("HANDSIZE", field(*QUEUING, "handSize")),
        Column("QUEUELENGTHLIMIT", field(*QUEUING, "queueLengthLimit")),
        AGE,
    ),
}
