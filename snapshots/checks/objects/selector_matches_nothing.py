"""A selector that selects nothing: a Service without backends, a policy or a disruption budget without effect.

Its labels are compared with those of the Pods and of the templates that Pods are made from, so that a workload scaled
to nothing counts. The usual cause is a typo: the nearest label value that does exist is named. Services without a
selector have their endpoints made by others, and ExternalName Services need none.

Fix: correct the selector, or the labels of the workload it was meant for.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from drtool.core.report import Finding, Severity
from snapshots.registry import selectors
from snapshots.registry.cluster import Cluster, evidence
from snapshots.registry.objects import Object
from snapshots.registry.selectors import Selector

SEVERITY = Severity.WARNING
TEMPLATES = {
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
SELECTORS = {"NetworkPolicy": ("spec", "podSelector"), "PodDisruptionBudget": ("spec", "selector")}
Labels = Mapping[str, Any]


def find(cluster: Cluster) -> Iterator[Finding]:
    known = _labels(cluster)
    for service in cluster.all("Service"):
        if service.at("spec", "selector") and service.at("spec", "type") != "ExternalName":
            selector = selectors.from_labels(service.at("spec", "selector"))
            yield from _weigh(service, selector, known, ("spec", "selector"))
    for kind, path in SELECTORS.items():
        for found in cluster.all(kind):
            yield from _weigh(found, selectors.from_object(found.at(*path)), known, path)


def _labels(cluster: Cluster) -> dict[str, list[Labels]]:
    """By namespace, the labels of Pods and of the templates of Pods."""
    known: dict[str, list[Labels]] = {}
    for pod in cluster.all("Pod"):
        known.setdefault(pod.namespace, []).append(pod.labels)
    for kind, path in TEMPLATES.items():
        for found in cluster.all(kind):
            known.setdefault(found.namespace, []).append(found.at(*path, "metadata", "labels") or {})
    return known


def _weigh(
    found: Object, selector: Selector, known: dict[str, list[Labels]], path: tuple[str, ...]
) -> Iterator[Finding]:
    here = known.get(found.namespace, [])
    if not selector.requirements or any(selector.matches(labels) for labels in here):
        return
    yield Finding(
        f"{found.kind} {found.namespace}/{found.name} selects {selector}, which no Pod or template has"
        + _nearest(selector, here),
        (evidence(found, *path),),
    )


def _nearest(selector: Selector, here: list[Labels]) -> str:
    for requirement in selector.requirements:
        values = {str(labels[requirement.key]) for labels in here if requirement.key in labels}
        for wanted in requirement.values:
            close = difflib.get_close_matches(wanted, values, n=1)
            if wanted not in values and close:
                return f"; the nearest is {requirement.key}={close[0]}"
        if not values:
            close = difflib.get_close_matches(requirement.key, {key for labels in here for key in labels}, n=1)
            if close:
                return f"; the nearest label is {close[0]}"
    return ""
