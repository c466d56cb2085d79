"""Lost objects made ready for `kubectl apply --server-side`: what a server fills in is taken off.

Left out altogether is what controllers and servers make by themselves: to write those too would fight with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from snapshots.registry.envelope import MISTYPED
from snapshots.registry.objects import Object, at

SERVER_FILLED = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"),
)
SELF_MADE = {
    "Event": "events are history",
    "Lease": "its holder makes it",
    "Endpoints": "made from its Service",
    "EndpointSlice": "made from its Service",
    "ControllerRevision": "made from its workload",
    "CSINode": "the kubelet makes it",
    "VolumeAttachment": "the attach controller makes it",
    "IPAddress": "made from its Service",
    "ServiceCIDR": "the API server makes it",
    "CertificateSigningRequest": "requests expire",
    "PodCertificateRequest": "requests expire",
    "StorageVersion": "the API server makes it",
    "LeaseCandidate": "its holder makes it",
}
MIRROR = "kubernetes.io/config.mirror"
BOUND = ("pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller")
JOB_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
ACCOUNT_TOKEN, ACCOUNT_UID = "kubernetes.io/service-account-token", "kubernetes.io/service-account.uid"
FIRST = (
    *("Namespace", "CustomResourceDefinition", "PriorityClass", "RuntimeClass", "StorageClass", "IngressClass"),
    *("ClusterRole", "ClusterRoleBinding", "ResourceQuota", "LimitRange", "ServiceAccount", "Role", "RoleBinding"),
    *("Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "NetworkPolicy", "PodDisruptionBudget"),
    *("Service", "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet"),
    *("HorizontalPodAutoscaler", "Job", "CronJob", "Ingress"),
)
LAST = ("APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy")


def order(body: Mapping[str, Any]) -> tuple[int, str, str, str]:
    """What others need comes first; custom resources after the workloads, webhooks last: they may refuse the rest."""
    kind = str(body.get("kind", ""))
    rank = FIRST.index(kind) if kind in FIRST else len(FIRST)
    rank = len(FIRST) + 1 + LAST.index(kind) if kind in LAST else rank
    return rank, kind, str(at(body, "metadata", "namespace") or ""), str(at(body, "metadata", "name") or "")


def reason_to_leave_out(found: Object, remade: Callable[[str], bool]) -> str:
    """Why an object is not written; "" for one that is. `remade(uid)`: its owner is alive, or is written too."""
    try:
        cleaned(found.body, remade, remade)
        return _reason(found, remade)
    except MISTYPED:
        return "a field has a type that no API server takes"


def _reason(found: Object, remade: Callable[[str], bool]) -> str:
    if found.trouble:
        return found.trouble
    if found.kind in SELF_MADE:
        return SELF_MADE[found.kind]
    owner = next((each for each in found.metadata.get("ownerReferences") or () if each.get("controller")), None)
    if owner is not None and remade(str(owner.get("uid"))):
        return f"{owner.get('kind')} {owner.get('name')} makes it"
    if MIRROR in (found.metadata.get("annotations") or {}):
        return "the kubelet makes it from a manifest"
    if found.kind == "ConfigMap" and found.name == "kube-root-ca.crt":
        return "the controller manager makes it"
    if found.kind == "APIService" and not found.at("spec", "service"):
        return "the API server makes it"
    ended = {"Complete", "Failed"}
    if found.kind == "Job" and any(
        each.get("type") in ended and each.get("status") == "True" for each in found.at("status", "conditions") or ()
    ):
        return "it has ended and would run again"
    return ""


def cleaned(body: dict[str, Any], alive: Callable[[str], bool], volumes: Callable[[str], bool]) -> dict[str, Any]:
    """`alive(uid)` tells which owners may still be named, `volumes(name)` which PersistentVolumes there will be."""
    out = {name: value for name, value in body.items() if name not in ("status", "$unknown")}
    metadata = {name: value for name, value in (body.get("metadata") or {}).items() if name not in SERVER_FILLED}
    owners = [each for each in at(body, "metadata", "ownerReferences") or () if alive(str(each.get("uid")))]
    out["metadata"] = metadata | ({"ownerReferences": owners} if owners else {})
    rule = RULES.get(str(body.get("kind")))
    out = rule(out) if rule else out
    return _claim(out, volumes) if body.get("kind") == "PersistentVolumeClaim" else out


def _spec(body: dict[str, Any], *gone: str) -> dict[str, Any]:
    spec = body.get("spec")
    if not isinstance(spec, dict):
        return body
    return body | {"spec": {name: value for name, value in spec.items() if name not in gone}}


def _annotations(body: dict[str, Any], *gone: str) -> dict[str, Any]:
    annotations = at(body, "metadata", "annotations")
    if not isinstance(annotations, dict):
        return body
    kept = {name: value for name, value in annotations.items() if name not in gone}
    metadata = {name: value for name, value in body["metadata"].items() if name != "annotations"}
    return body | {"metadata": metadata | ({"annotations": kept} if kept else {})}


def _service(body: dict[str, Any]) -> dict[str, Any]:
    """A new address is given, unless it is headless: the old one may be another's by now."""
    if at(body, "spec", "clusterIP") in (None, "", "None"):
        return body
    return _spec(body, "clusterIP", "clusterIPs", "healthCheckNodePort")


def _claim(body: dict[str, Any], volumes: Callable[[str], bool]) -> dict[str, Any]:
    body = _annotations(body, *BOUND)
    return body if volumes(str(at(body, "spec", "volumeName") or "")) else _spec(body, "volumeName")


def _volume(body: dict[str, Any]) -> dict[str, Any]:
    """It stays reserved for the claim of that name, whatever uid that one gets."""
    body = _annotations(body, "pv.kubernetes.io/bound-by-controller")
    claim = at(body, "spec", "claimRef")
    if not isinstance(claim, dict):
        return body
    kept = {name: value for name, value in claim.items() if name not in ("uid", "resourceVersion")}
    return body | {"spec": body["spec"] | {"claimRef": kept}}


def _job(body: dict[str, Any]) -> dict[str, Any]:
    if at(body, "spec", "manualSelector"):
        return body
    body = _spec(body, "selector")
    metadata = at(body, "spec", "template", "metadata")
    if isinstance(metadata, dict):
        labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name not in JOB_LABELS}
        template = body["spec"]["template"] | {"metadata": metadata | {"labels": labels}}
        body = body | {"spec": body["spec"] | {"template": template}}
    labels = {name: value for name, value in (body["metadata"].get("labels") or {}).items() if name not in JOB_LABELS}
    return body | {"metadata": body["metadata"] | ({"labels": labels} if "labels" in body["metadata"] else {})}


def _secret(body: dict[str, Any]) -> dict[str, Any]:
    """A service account's token belonged to the account's old uid; the controller fills in a new one."""
    if body.get("type") != ACCOUNT_TOKEN:
        return body
    return _annotations({name: value for name, value in body.items() if name != "data"}, ACCOUNT_UID)


def _deployment(body: dict[str, Any]) -> dict[str, Any]:
    return _annotations(body, "deployment.kubernetes.io/revision")


def _pod(body: dict[str, Any]) -> dict[str, Any]:
    return _spec(body, "nodeName")


def _namespace(body: dict[str, Any]) -> dict[str, Any]:
    return _spec(body, "finalizers")


RULES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "Service": _service,
    "PersistentVolume": _volume,
    "Job": _job,
    "Secret": _secret,
    "Pod": _pod,
    "Deployment": _deployment,
    "Namespace": _namespace,
}
