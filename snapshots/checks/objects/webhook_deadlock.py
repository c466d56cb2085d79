"""A webhook that must answer, and whose own Pods it keeps from starting.

With failurePolicy Fail the API server refuses what a webhook cannot judge. Where its Service has no ready endpoint, and
it judges the making of Pods in its own namespace too, its Pods can never start again: the cluster cannot heal by
itself. failurePolicy Fail alone is no fault, nor is a webhook that leaves its own namespace out.

Fix: exclude the webhook's namespace by its namespaceSelector; to get out of it now, delete the webhook configuration
(its operator makes it again) or set failurePolicy: Ignore.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from drtool.core.report import Finding, Fix, Severity
from snapshots.registry import selectors
from snapshots.registry.cluster import Cluster, evidence
from snapshots.registry.objects import Object, at
from snapshots.registry.tables.cells import dicts

SEVERITY = Severity.ERROR
KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
NAME_LABEL = "kubernetes.io/metadata.name"


def find(cluster: Cluster) -> Iterator[Finding]:
    for kind in KINDS:
        for configuration in cluster.all(kind):
            for place, webhook in enumerate(dicts(configuration.body.get("webhooks"))):
                yield from _weigh(cluster, configuration, place, webhook)


def _weigh(cluster: Cluster, found: Object, place: int, webhook: dict[str, Any]) -> Iterator[Finding]:
    service = at(webhook, "clientConfig", "service")
    if webhook.get("failurePolicy", "Fail") != "Fail" or not isinstance(service, dict) or not _judges_pods(webhook):
        return
    namespace, name = str(service.get("namespace")), str(service.get("name"))
    space = cluster.get("Namespace", namespace)
    labels = {NAME_LABEL: namespace} | (space.labels if space else {})
    if not selectors.from_object(webhook.get("namespaceSelector")).matches(labels):
        return
    if _has_backend(cluster, namespace, name):
        return
    yield Finding(
        f"Webhook {webhook.get('name')} must answer for every new Pod, its own too, and Service {namespace}/{name} "
        "has no ready endpoint",
        (evidence(found, "webhooks", place, "failurePolicy"), _backend(cluster, namespace, name, found)),
        fix=Fix(
            f"kubectl delete {found.kind.lower()} {found.name}",
            "lets Pods start again; the webhook's operator makes the configuration anew",
        ),
    )


def _judges_pods(webhook: dict[str, Any]) -> bool:
    """Whether a rule covers the making of Pods."""
    return any(
        _has(rule, "apiGroups", "") and _has(rule, "operations", "CREATE") and _has(rule, "resources", "pods", "*/*")
        for rule in dicts(webhook.get("rules"))
    )


def _has(rule: Mapping[str, Any], field: str, *words: str) -> bool:
    listed = rule.get(field) or ()
    return any(word in listed for word in (*words, "*"))


def _has_backend(cluster: Cluster, namespace: str, name: str) -> bool:
    for each in cluster.all("EndpointSlice"):
        ours = each.namespace == namespace and each.labels.get("kubernetes.io/service-name") == name
        if ours and any(at(end, "conditions", "ready") is not False for end in dicts(each.body.get("endpoints"))):
            return True
    legacy = cluster.get("Endpoints", name, namespace)
    return legacy is not None and any(subset.get("addresses") for subset in dicts(legacy.body.get("subsets")))


def _backend(cluster: Cluster, namespace: str, name: str, found: Object) -> Any:
    service = cluster.get("Service", name, namespace)
    return evidence(service, "spec", "selector") if service else evidence(found, "webhooks")
