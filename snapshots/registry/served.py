"""What the API server adds between etcd and kubectl: the served version of a kind, and a default set on reading.

Only what a comparison with a real API server 1.37 showed; everything else is stored as it is served.
"""

from __future__ import annotations

from typing import Any

RENAMED = {
    "certificates.k8s.io/v1beta1": ("certificates.k8s.io/v1", {"ClusterTrustBundle", "PodCertificateRequest"}),
}
"""Stored in an older version whose fields are those of the served one."""
MOVED = {
    "validation": "schema",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Of a v1beta1 CRD's spec, to every one of its versions."""


def served(body: dict[str, Any]) -> dict[str, Any]:
    """The object as `kubectl get` shows it; `body` itself where that is what is stored."""
    version, kind = body.get("apiVersion"), body.get("kind")
    if version == "v1" and kind == "PersistentVolumeClaim":
        return _claim(body)
    if version == "apps/v1" and kind == "StatefulSet":
        return _stateful_set(body)
    if version == "apiextensions.k8s.io/v1beta1" and kind == "CustomResourceDefinition":
        return body | {"apiVersion": "apiextensions.k8s.io/v1", "spec": _definition(body.get("spec") or {})}
    newer, kinds = RENAMED.get(str(version), ("", set()))
    return body | {"apiVersion": newer} if kind in kinds else body


def _claim(body: dict[str, Any]) -> dict[str, Any]:
    """SetDefaults_PersistentVolumeClaim."""
    status = body.get("status") or {}
    return body if status.get("phase") else body | {"status": status | {"phase": "Pending"}}


def _stateful_set(body: dict[str, Any]) -> dict[str, Any]:
    spec = body.get("spec") or {}
    templates = spec.get("volumeClaimTemplates")
    if not isinstance(templates, list):
        return body
    named = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | _claim(each) for each in templates]
    return body | {"spec": spec | {"volumeClaimTemplates": named}}


def _definition(spec: dict[str, Any]) -> dict[str, Any]:
    """A v1beta1 spec, which is how CRDs are stored, as v1 has it (apiextensions/v1/conversion.go)."""
    out = {name: value for name, value in spec.items() if name not in MOVED and name != "version"}
    common = {MOVED[name]: value for name, value in spec.items() if name in MOVED and value is not None}
    versions = spec.get("versions") or [{"name": spec.get("version", ""), "served": True, "storage": True}]
    out["versions"] = [_version(each | common) for each in versions]
    if isinstance(spec.get("conversion"), dict):
        out["conversion"] = _conversion(spec["conversion"])
    if out.get("preserveUnknownFields") is False:
        del out["preserveUnknownFields"]
    return out


def _version(version: dict[str, Any]) -> dict[str, Any]:
    columns = version.get("additionalPrinterColumns")
    if not isinstance(columns, list):
        return version
    renamed = [{"jsonPath" if name == "JSONPath" else name: at for name, at in each.items()} for each in columns]
    return version | {"additionalPrinterColumns": renamed}


def _conversion(conversion: dict[str, Any]) -> dict[str, Any]:
    out = {"strategy": conversion.get("strategy")}
    webhook = {}
    if conversion.get("webhookClientConfig") is not None:
        webhook["clientConfig"] = conversion["webhookClientConfig"]
    if conversion.get("conversionReviewVersions") is not None:
        webhook["conversionReviewVersions"] = conversion["conversionReviewVersions"]
    return out | ({"webhook": webhook} if webhook else {})
