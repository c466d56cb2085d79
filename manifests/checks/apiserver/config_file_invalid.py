"""The configuration files that the API server and the scheduler are given must be of the kind and version they read.

Audit policy, admission, encryption, authentication, authorization, egress and tracing configuration and the scheduler's
own file: a wrong kind or apiVersion, an unknown provider, a key of the wrong length or an audit policy without rules
stops the program before it listens. audit.k8s.io/v1 is the only audit version since 1.24. An encryption configuration
with `identity` alone is legal.

Fix: correct the file, on every control-plane node alike; never make a new encryption key to get past the message.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from drtool.core.report import Evidence, Finding, Severity
from manifests.document import Document, Unparsable, parse
from manifests.installed import layer_of
from manifests.node import Node
from manifests.pod import Component

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "encryption-keys-vs-data")
CONFIG = "apiserver.config.k8s.io/"


@dataclass(frozen=True)
class Kind:
    """`versions`: apiVersion -> first and last minor of Kubernetes 1.x that reads it (99: still does)."""

    kind: str
    versions: dict[str, tuple[int, int]]


# From the schemes that each release of the programs registers, 1.24 to 1.37.
KINDS = {
    ("kube-apiserver", "audit-policy-file"): Kind("Policy", {"audit.k8s.io/v1": (12, 99)}),
    ("kube-apiserver", "admission-control-config-file"): Kind(
        "AdmissionConfiguration", {f"{CONFIG}v1": (17, 99), "apiserver.k8s.io/v1alpha1": (8, 99)}
    ),
    ("kube-apiserver", "encryption-provider-config"): Kind(
        "EncryptionConfiguration", {f"{CONFIG}v1": (13, 99), "v1": (7, 99)}
    ),
    ("kube-apiserver", "authentication-config"): Kind(
        "AuthenticationConfiguration",
        {f"{CONFIG}v1alpha1": (29, 99), f"{CONFIG}v1beta1": (30, 99), f"{CONFIG}v1": (34, 99)},
    ),
    ("kube-apiserver", "authorization-config"): Kind(
        "AuthorizationConfiguration",
        {f"{CONFIG}v1alpha1": (29, 99), f"{CONFIG}v1beta1": (30, 99), f"{CONFIG}v1": (32, 99)},
    ),
    ("kube-apiserver", "egress-selector-config-file"): Kind(
        "EgressSelectorConfiguration", {"apiserver.k8s.io/v1alpha1": (16, 99), "apiserver.k8s.io/v1beta1": (20, 99)}
    ),
    ("kube-apiserver", "tracing-config-file"): Kind(
        "TracingConfiguration",
        {f"{CONFIG}v1alpha1": (22, 99), f"{CONFIG}v1beta1": (27, 99), f"{CONFIG}v1": (34, 99)},
    ),
    ("kube-scheduler", "config"): Kind(
        "KubeSchedulerConfiguration",
        {
            "kubescheduler.config.k8s.io/v1beta2": (22, 27),
            "kubescheduler.config.k8s.io/v1beta3": (23, 28),
            "kubescheduler.config.k8s.io/v1": (25, 99),
        },
    ),
}
LEVELS = ("None", "Metadata", "Request", "RequestResponse")
KEY_LENGTHS = {"aescbc": (16, 24, 32), "aesgcm": (16, 24, 32), "secretbox": (32,)}
PROVIDERS = (*KEY_LENGTHS, "identity", "kms")


def find(node: Node) -> Iterator[Finding]:
    for (program, name), kind in KINDS.items():
        component = node.components.get(program)
        if component is None or not component.has(name):
            continue
        flag = component.flag(name)
        entry = node.entry(component.container.host_path(flag.value) or flag.value)
        if entry.data is None:
            continue  # an absent file is flag-file-not-mounted's
        for title, evidence in _faults(entry.path, entry.data, component, kind):
            yield Finding(title, (evidence, flag.evidence), layer=layer_of(program))


def _faults(path: str, data: bytes, component: Component, kind: Kind) -> Iterator[tuple[str, Evidence]]:
    try:
        document = next(iter(parse(path, data)), None)
    except Unparsable as problem:
        if not problem.refused:
            yield f"{path} cannot be read: {problem.problem}", Evidence(path, problem.line)
        return
    if document is None or not isinstance(document.data, dict):
        yield f"{path} is no {kind.kind}", Evidence(path)
        return
    fault = _kind_fault(document, component, kind)
    if fault:
        yield fault, document.evidence("apiVersion" if document.get("kind") == kind.kind else "kind")
    elif kind.kind == "EncryptionConfiguration":
        yield from _encryption(document)
    elif kind.kind == "Policy":
        yield from _audit(document)


def _kind_fault(document: Document, component: Component, kind: Kind) -> str:
    found, version = document.get("kind"), str(document.get("apiVersion", default=""))
    if found != kind.kind and not (kind.kind == "EncryptionConfiguration" and found == "EncryptionConfig"):
        return f"{document.path} is a {found or 'document without a kind'}, and {component.program} wants a {kind.kind}"
    if version not in kind.versions:
        return f"{document.path}: {component.program} knows no {kind.kind} of apiVersion {version or '(none)'}"
    first, last = kind.versions[version]
    if component.version and not first <= component.version[1] <= last:
        release = ".".join(map(str, component.version))
        return f"{document.path}: {component.program} {release} does not read {kind.kind} {version}"
    return ""


def _audit(document: Document) -> Iterator[tuple[str, Evidence]]:
    rules = document.get("rules")
    if not isinstance(rules, list) or not rules:
        yield f"{document.path} has no rules, which the API server refuses", document.evidence("rules")
        return
    for index, rule in enumerate(rules):
        level = rule.get("level") if isinstance(rule, dict) else rule
        if level not in LEVELS:
            where = document.evidence("rules", index, "level")
            yield f"{document.path}: audit level {level!r} is none of {', '.join(LEVELS)}", where


def _encryption(document: Document) -> Iterator[tuple[str, Evidence]]:
    resources = document.get("resources")
    if not isinstance(resources, list) or not resources:
        yield f"{document.path} lists no resources", document.evidence("resources")
        return
    for index, group in enumerate(resources):
        providers = group.get("providers") if isinstance(group, dict) else None
        if not isinstance(providers, list) or not providers:
            yield f"{document.path}: resources[{index}] has no providers", document.evidence("resources", index)
            continue
        for number, provider in enumerate(providers):
            where = ("resources", index, "providers", number)
            yield from _provider(document, provider, where)


def _provider(document: Document, provider: Any, where: tuple[str | int, ...]) -> Iterator[tuple[str, Evidence]]:
    if not isinstance(provider, dict) or len(provider) != 1:
        yield f"{document.path}: a provider must be exactly one of {', '.join(PROVIDERS)}", document.evidence(*where)
        return
    name, settings = next(iter(provider.items()))
    if name not in PROVIDERS:
        yield f"{document.path}: there is no encryption provider {name}", document.evidence(*where, name)
        return
    keys = settings.get("keys") if isinstance(settings, dict) else None
    if name in KEY_LENGTHS and not keys:
        yield f"{document.path}: provider {name} has no keys", document.evidence(*where, name)
    for index, key in enumerate(keys if name in KEY_LENGTHS and isinstance(keys, list) else []):
        fault = _key_fault(key, KEY_LENGTHS[name])
        if fault:
            # the evidence names the key by its position alone: its line holds the secret
            line = document.evidence(*where, name, "keys", index).line
            yield f"{document.path}: key {index + 1} of {name} {fault}", Evidence(document.path, line)


def _key_fault(key: Any, lengths: tuple[int, ...]) -> str:
    if not isinstance(key, dict) or not key.get("name"):
        return "has no name"
    secret = "".join(str(key.get("secret") or "").split("\n"))  # Go skips line ends in base64
    if not secret:
        return "has no secret"
    try:
        size = len(base64.b64decode(secret, validate=True))
    except (binascii.Error, ValueError):
        return "is not base64"
    wanted = " or ".join(map(str, lengths))
    return "" if size in lengths else f"has {size} bytes, and must have {wanted}"
