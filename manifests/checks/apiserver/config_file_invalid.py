"""The configuration files that the API server and the scheduler are given must be of the kind and version they read.

Audit policy, admission, encryption, authentication, authorization, egress and tracing configuration and the scheduler's
own file: a wrong kind or apiVersion, an unknown provider, a key of the wrong length, a misspelt audit stage or an
authorizer without a name stops the program before it listens, and so does a field that it does not know (since 1.31
or 1.32; an audit policy is read without such a field). KMS v1 needs the feature gate KMSv1 since 1.29. audit.k8s.io/v1
is the only audit version since 1.24. An encryption configuration with `identity` alone is legal.

Fix: correct the file, on every control-plane node alike; never make a new encryption key to get past the message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.report import Evidence, Finding, Severity
from manifests.configurations import refused_values
from manifests.document import Document, Unparsable, parse
from manifests.installed import layer_of
from manifests.node import Node
from manifests.pod import Component
from manifests.releases.configurations import FIELDS

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
    elif kind.kind in FIELDS:
        yield from refused_values(document, kind.kind, component)


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
