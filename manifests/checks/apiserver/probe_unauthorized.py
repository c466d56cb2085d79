"""The kubelet's probes carry no credential: the API server must let anonymous requests reach the health paths.

With --anonymous-auth=false, or an AuthenticationConfiguration that allows anonymous requests nowhere or on other paths,
/livez answers 401 and the kubelet kills a healthy API server every minute or two. TCP and exec probes are not
concerned, nor are probes with an Authorization header. The same holds for the scheduler and the controller-manager
where --authorization-always-allow-paths leaves their health path out.

Fix: allow anonymous requests for /livez, /readyz and /healthz in an AuthenticationConfiguration (1.31 and newer), or
give up --anonymous-auth=false, or probe the port by TCP.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.installed import layer_of
from manifests.node import Node
from manifests.pod import Component, Probe

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
KILLS = ("livenessProbe", "startupProbe")


def find(node: Node) -> Iterator[Finding]:
    for program in ("kube-controller-manager", "kube-scheduler"):
        if program in node.components:
            yield from _always_allowed(node.components[program])
    apiserver = node.apiserver
    allowed, where = _anonymous(node, apiserver)
    for probe in _bare_probes(apiserver):
        path = probe.path.partition("?")[0]
        if allowed is not None and path not in allowed:
            yield Finding(
                f"The API server refuses anonymous requests, so its {probe.kind} of {path} gets 401",
                (where, probe.evidence),
                severity=None if probe.kind in KILLS else Severity.ERROR,
            )


def _anonymous(node: Node, apiserver: Component) -> tuple[frozenset[str] | None, Evidence]:
    """The paths open to anonymous requests and what says so; None for all of them."""
    if apiserver.value("anonymous-auth", "true").lower() in {"false", "f", "0"}:
        return frozenset(), apiserver.flag("anonymous-auth").evidence
    if not apiserver.has("authentication-config"):
        return None, apiserver.image_evidence
    flag = apiserver.flag("authentication-config")
    path = apiserver.container.host_path(flag.value) or flag.value
    try:
        document = node.document(path)
    except EvidenceMissing:
        return None, flag.evidence  # absent or unreadable: checks of their own
    anonymous = document.get("anonymous")
    if not isinstance(anonymous, dict):
        return None, flag.evidence
    if not anonymous.get("enabled"):
        return frozenset(), document.evidence("anonymous", "enabled")
    conditions = anonymous.get("conditions")
    if not isinstance(conditions, list) or not conditions:
        return None, flag.evidence
    paths = (condition.get("path") for condition in conditions if isinstance(condition, dict))
    return frozenset(str(path) for path in paths if path), document.evidence("anonymous", "conditions")


def _bare_probes(component: Component) -> Iterator[Probe]:
    for probe in component.container.probes:
        action = probe.settings.get(probe.action)
        headers = action.get("httpHeaders") if isinstance(action, dict) else None
        listed = headers if isinstance(headers, list) else []
        named = {str(header.get("name", "")).lower() for header in listed if isinstance(header, dict)}
        if probe.action == "httpGet" and probe.scheme.upper() == "HTTPS" and "authorization" not in named:
            yield probe


def _always_allowed(component: Component) -> Iterator[Finding]:
    if not component.has("authorization-always-allow-paths"):
        return
    flag = component.flag("authorization-always-allow-paths")
    open_paths = component.names("authorization-always-allow-paths")
    for probe in _bare_probes(component):
        path = probe.path.partition("?")[0]
        if not any(fnmatchcase(path, pattern) for pattern in open_paths):
            yield Finding(
                f"{component.program} lets nobody reach {path} without a credential, and its {probe.kind} has none",
                (flag.evidence, probe.evidence),
                severity=None if probe.kind in KILLS else Severity.ERROR,
                layer=layer_of(component.program),
            )
