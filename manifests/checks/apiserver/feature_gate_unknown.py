"""Feature gates must be ones that the program's version knows, and may not be set against a lock.

With a gate that it does not know a program exits with `unrecognized feature gate`, with one that is locked with `cannot
set feature gate`. Gates are removed some releases after their feature became generally available; a gate set to its
locked default still works until then, which is a warning. kubeadm has gates of its own (ControlPlaneKubeletLocalMode is
one) that no program takes. `kube:Gate=true` is understood since 1.31, but not by the kubelet; etcd has gates since 3.6.

Fix: take the gate out of the manifest or of the kubelet's configuration.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.installed import Release, covered, kubelet_release, layer_of
from manifests.node import Node
from manifests.releases import tables
from manifests.releases.tables import State

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "kubelet-not-running")
PREFIXED_SINCE = (1, 31)


@dataclass(frozen=True, slots=True)
class Setting:
    prefix: str
    name: str
    value: str
    evidence: Evidence


def find(node: Node) -> Iterator[Finding]:
    gap: EvidenceMissing | None = None
    for component in node.components.values():
        settings = [
            Setting(*parts, flag.evidence)
            for flag in component.all("feature-gates")
            for parts in tables.split_gates(flag.value)
        ]
        try:
            if settings:
                yield from _judge(component.program, settings, covered(node, component))
        except EvidenceMissing as missing:
            gap = gap or missing
    yield from _kubelet(node)
    if gap:
        raise gap


def _kubelet(node: Node) -> Iterator[Finding]:
    kubelet = node.kubelet
    settings = [
        Setting(*parts, flag.evidence)
        for flag in kubelet.flags
        if flag.name == "feature-gates"
        for parts in tables.split_gates(flag.value)
    ]
    for document in (*([kubelet.config] if kubelet.config else []), *kubelet.drop_ins):
        configured = document.get("featureGates")
        settings += [
            Setting("", str(name), str(value).lower(), document.evidence("featureGates", name))
            for name, value in (configured.items() if isinstance(configured, dict) else ())
        ]
    if settings:
        yield from _judge("kubelet", settings, kubelet_release(node))


def _judge(program: str, settings: list[Setting], release: Release) -> Iterator[Finding]:
    if tables.gates(release.numbers, program) is None:
        raise EvidenceMissing(f"no release data of {program} {release}")
    for setting in settings:
        title, severity = _fault(program, setting, release)
        if title:
            if severity is None and not release.certain and program != "kubelet":
                severity = Severity.WARNING
            yield Finding(title, (setting.evidence, release.evidence), severity, layer_of(program))


def _fault(program: str, setting: Setting, release: Release) -> tuple[str, Severity | None]:
    shown = f"{setting.prefix}:{setting.name}" if setting.prefix else setting.name
    what = f"Feature gate {shown} of {program} {release}"
    if setting.prefix and (program in {"kubelet", "etcd"} or release.numbers < PREFIXED_SINCE):
        return f"{what}: this program takes no component prefix", None
    if setting.prefix not in {"", "kube"}:
        return f"{what}: there is no component {setting.prefix}", None
    if setting.value.lower() not in {"true", "false", "1", "0", "t", "f"}:
        return f"{what} is set to {setting.value!r}, which is neither true nor false", None
    verdict = tables.explain_gate(setting.name, release.numbers, program)
    gate = tables.gate(setting.name, release.numbers, program)
    if gate is None and program == "kubelet" and not release.certain and verdict and verdict.state is State.NOT_YET:
        return "", None  # which release of the kubelet runs here is only likely
    if gate is None:
        return f"{what} {verdict.why if verdict else 'is unknown'}", None
    wanted = setting.value.lower() in {"true", "1", "t"}
    if gate.locked and wanted != gate.default:
        return f"{what} is locked to {str(gate.default).lower()} and set to {setting.value}", None
    if gate.locked:
        return f"{what} is locked to this value: it has no effect and will be removed", Severity.WARNING
    return "", None
