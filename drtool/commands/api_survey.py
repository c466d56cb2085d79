"""Reads every kind through an API server: that is what a recovery is for. One write, taken back, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from drtool.core.errors import DrtoolError
from manifests.api import Api

PAGE = 500
PROBE = "/api/v1/namespaces/kube-system/configmaps/drtool-drill"


@dataclass
class Survey:
    """`failed` are kinds that could not be listed, with the reason; objects beyond the first 500 of a kind are counted
    by the server and not read.
    """

    version: str = ""
    kinds: int = 0
    objects: int = 0
    counted: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    proven: list[str] = field(default_factory=list)
    not_proven: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    path: str
    custom: bool


def survey(api: Api) -> Survey:
    found = Survey(version=str((api.get("/version") or {}).get("gitVersion", "")))
    read: dict[str, int] = {}
    custom = 0
    for kind in _kinds(api, found):
        try:
            listed = api.get(f"{kind.path}?limit={PAGE}") or {}
        except DrtoolError as error:
            found.failed.append((kind.name, error.what))
            continue
        items = len(listed.get("items") or ())
        found.kinds += 1
        found.objects += items
        found.counted += items + int((listed.get("metadata") or {}).get("remainingItemCount") or 0)
        read[kind.name] = read.get(kind.name, 0) + items
        custom += items if kind.custom else 0
    _say(found, read, custom)
    _write(api, found)
    return found


def _kinds(api: Api, found: Survey) -> Iterator[_Kind]:
    """Every resource that can be listed, in the version that the server prefers."""
    yield from _listable(api, "/api/v1", custom=False, found=found)
    groups = (api.get("/apis") or {}).get("groups") or []
    for group in groups:
        name = str(group.get("name", ""))
        version = str((group.get("preferredVersion") or {}).get("groupVersion", ""))
        yield from _listable(api, f"/apis/{version}", custom=not name.endswith(".k8s.io") and "." in name, found=found)


def _listable(api: Api, path: str, custom: bool, found: Survey) -> Iterator[_Kind]:
    try:
        resources: list[dict[str, Any]] = (api.get(path) or {}).get("resources") or []
    except DrtoolError as error:
        found.failed.append((path, error.what))
        return
    for resource in resources:
        name = str(resource.get("name", ""))
        if "/" not in name and "list" in (resource.get("verbs") or ()):
            yield _Kind(name, f"{path}/{name}", custom)


def _say(found: Survey, read: dict[str, int], custom: int) -> None:
    for name, words in (("namespaces", "namespaces"), ("nodes", "nodes"), ("secrets", "Secrets")):
        if read.get(name):
            found.proven.append(f"{words} read: {read[name]}")
        else:
            found.not_proven.append(f"{name}: there is none to read")
    if custom:
        found.proven.append(f"custom resources read: {custom}")
    else:
        found.not_proven.append("custom resources: there is none to read")
    if found.counted > found.objects:
        rest = found.counted - found.objects
        found.not_proven.append(f"{rest} objects beyond the first {PAGE} of their kind: counted, not read")


def _write(api: Api, found: Survey) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "drtool-drill", "namespace": "kube-system"},
        "data": {"written": "by a drill"},
    }
    try:
        api.apply(PROBE, body)
        api.delete(PROBE)
    except DrtoolError as error:
        found.failed.append(("writing a ConfigMap", error.what))
        return
    found.proven.append("a ConfigMap was written and deleted")
