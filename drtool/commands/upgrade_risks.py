"""What would stop an upgrade, or break after it: in the manifests, the certificates and the objects themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from drtool.core.check import EvidenceMissing
from manifests.node import Node
from manifests.pki.credentials import credentials
from manifests.pod import Component
from manifests.releases import apis
from manifests.releases.tables import State, explain_flag, explain_gate, explain_plugin, split_gates
from snapshots.registry.cluster import Cluster
from snapshots.registry.objects import Object
from snapshots.registry.selectors import from_object

SOON = timedelta(days=14)
FIXED_35 = (3, 5, 24)
REPOSITORIES = ("/etc/apt/sources.list.d/", "/etc/yum.repos.d/")
PACKAGES_OF = r"^(?!\s*#).*/v1\.(\d+)/(?:deb|rpm)\b"
SECTIONS = {
    "apiServer": "kube-apiserver",
    "controllerManager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
}
PLUGIN_FLAGS = ("enable-admission-plugins", "disable-admission-plugins")


@dataclass(frozen=True, slots=True)
class Blocked:
    """A PodDisruptionBudget that allows no eviction of a Pod on the node now."""

    budget: str
    why: str


def node_risks(node: Node, target: int) -> Iterator[str]:
    for component in node.components.values():
        if component.program != "etcd":
            yield from _flags(component, target)
    yield from _kubelet_flags(node, target)
    yield from _etcd(node, target)
    yield from _repositories(node, target)
    for credential in credentials(node):
        certificate = credential.certificate
        soon = certificate is not None and certificate.not_after < node.at + SOON
        if certificate is not None and soon and not credential.role.startswith("kubelet"):
            yield f"{credential.path} ends at {certificate.not_after:%Y-%m-%d}: the upgrade renews it, if it is in time"


def _flags(component: Component, target: int) -> Iterator[str]:
    release = (1, target)
    for flag in component.container.flags:
        verdict = explain_flag(component.program, flag.name, release)
        if verdict is not None and verdict.state in {State.REMOVED, State.UNKNOWN}:
            yield f"{flag.evidence}: --{flag.name} {verdict.why}"
        if flag.name == "feature-gates":
            for prefix, name, _ in split_gates(flag.value):
                found = explain_gate(name, release, component.program)
                if found is not None and not found.accepted and prefix in {"", "kube"}:
                    yield f"{flag.evidence}: feature gate {name} {found.why}"
        if flag.name in PLUGIN_FLAGS:
            for name in flag.value.split(","):
                plugin = explain_plugin(name.strip(), release)
                if plugin is not None and not plugin.accepted:
                    yield f"{flag.evidence}: admission plugin {name} {plugin.why}"


def _kubelet_flags(node: Node, target: int) -> Iterator[str]:
    for flag in node.kubelet.flags:
        verdict = explain_flag("kubelet", flag.name, (1, target))
        if verdict is not None and verdict.state in {State.REMOVED, State.UNKNOWN}:
            yield f"{flag.evidence}: kubelet --{flag.name} {verdict.why}"


def _repositories(node: Node, target: int) -> Iterator[str]:
    """Each minor has a package repository of its own: that of another one has not the packages to install."""
    found = [
        (int(match[1]), evidence)
        for path in sorted(node.capture.entries)
        if path.startswith(REPOSITORIES)
        for match, evidence in node.find(path, PACKAGES_OF)
    ]
    if found and target not in {minor for minor, _ in found}:
        minor, evidence = found[-1]
        yield f"{evidence}: has the packages of 1.{minor} alone: name 1.{target} there before kubeadm is installed"


def _etcd(node: Node, target: int) -> Iterator[str]:
    """3.6 takes members from the v3 store, which 3.5 before 3.5.24 did not keep right: voters come back as learners."""
    etcd = node.components.get("etcd")
    if etcd is None or etcd.version is None:
        return
    wanted = apis.etcd_image(target)
    if etcd.version < FIXED_35 and etcd.version[:2] == (3, 5) and not wanted.startswith("3.5."):
        has = ".".join(map(str, etcd.version))
        yield (
            f"{etcd.image_evidence}: etcd {has} to {wanted} goes wrong on a stale member store: "
            "run 3.5.24 or newer first, on every member"
        )


def cluster_risks(cluster: Cluster, current: int, target: int) -> list[str]:
    """Objects written with API versions that the target does not serve, and kubeadm's own settings."""
    risks = []
    gone = {(one.api_version, one.kind): one for one in apis.removed(current, target)}
    names = {version for version, _ in gone}
    for found in cluster.registry.everything():
        body = found.body if isinstance(found.body, dict) else {}
        written = str(body.get("apiVersion", ""))
        if (written, found.kind) in gone:
            risks.append(_removal(found, gone[written, found.kind].instead, written, "is stored as", target))
        managers = {str(entry.get("manager")) for entry in _managers(body) if entry.get("apiVersion") in names}
        by = f"an API version that 1.{target} does not serve"
        risks += [f"{found}: {name} writes it by {by}" for name in sorted(managers)]
    return [*risks, *_kubeadm_arguments(cluster, target)]


def _managers(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = (body.get("metadata") or {}).get("managedFields") or []
    return [entry for entry in entries if isinstance(entry, dict)]


def _removal(found: Object, instead: str, written: str, how: str, target: int) -> str:
    use = f"; use {instead}" if instead else ""
    return f"{found} {how} {written}, which 1.{target} does not serve{use}"


def _kubeadm_arguments(cluster: Cluster, target: int) -> Iterator[str]:
    """extraArgs come back into the manifests with every upgrade."""
    try:
        document, _ = cluster.kubeadm()
    except EvidenceMissing:
        return
    sections = {
        "apiServer": "kube-apiserver",
        "controllerManager": "kube-controller-manager",
        "scheduler": "kube-scheduler",
    }
    for section, program in sections.items():
        for name in _argument_names(document.get(section)):
            verdict = explain_flag(program, name, (1, target))
            if verdict is not None and verdict.state in {State.REMOVED, State.UNKNOWN}:
                yield f"kubeadm-config: {section}.extraArgs.{name} {verdict.why}"


def _argument_names(section: object) -> list[str]:
    """A mapping (v1beta3) or a list of name and value (v1beta4)."""
    arguments = section.get("extraArgs") if isinstance(section, dict) else None
    if isinstance(arguments, dict):
        return [str(name) for name in arguments]
    return [str(one.get("name")) for one in arguments or [] if isinstance(one, dict)]


def blocked_drains(cluster: Cluster) -> dict[str, tuple[Blocked, ...]]:
    """By node: the budgets that allow no disruption now and cover a Pod there, as the last status in the db says."""
    found: dict[str, dict[str, Blocked]] = {}
    pods = [pod for pod in cluster.all("Pod") if pod.at("status", "phase") in {"Running", "Pending", None}]
    for budget in cluster.all("PodDisruptionBudget"):
        allowed = budget.at("status", "disruptionsAllowed")
        if isinstance(allowed, int) and allowed > 0:
            continue
        selector = from_object(budget.at("spec", "selector"))
        for pod in pods:
            if pod.namespace == budget.namespace and selector.matches(pod.labels):
                name = f"{budget.namespace}/{budget.name}"
                why = f"allows no disruption now; Pod {pod.name} is on the node"
                found.setdefault(str(pod.at("spec", "nodeName")), {}).setdefault(name, Blocked(name, why))
    return {node: tuple(budgets.values()) for node, budgets in found.items()}
