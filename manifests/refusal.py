"""Why the kubelet would not take a static Pod: its decoder, and what it validates of a Pod.

The types of all fields are those of the API (releases/pod.json). Of the validation (pkg/apis/core/validation) it is
what manifests that are edited by hand run into; tried against the decoder and validation of the kubelet 1.37.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from drtool.core.report import Evidence
from manifests.document import Document
from manifests.quantity import quantity
from manifests.releases import tables

Path: TypeAlias = tuple[str | int, ...]
Refusals: TypeAlias = Iterator[tuple[str, Path]]

HOST_PATH_TYPES = (
    "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice",
)  # fmt: skip
CHOICES = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "protocol": ("TCP", "UDP", "SCTP"),
    "scheme": ("HTTP", "HTTPS"),
}
RESOURCES = ("cpu", "memory", "ephemeral-storage")
SECCOMP = ("RuntimeDefault", "Unconfined", "Localhost")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
"""IANA's service names (RFC 6335): 15 characters, at least one of them a letter, no two hyphens together."""
API_VOLUMES = {
    "configMap": "ConfigMap",
    "secret": "Secret",
    "persistentVolumeClaim": "PersistentVolumeClaim",
    "ephemeral": "PersistentVolumeClaim",
    "csi": "CSIDriver",
    "azureFile": "Secret",
    "glusterfs": "Endpoints",
}
API_VALUES = {
    "secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap", "secretRef": "Secret", "configMapRef": "ConfigMap",
}  # fmt: skip
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def refusal(document: Document) -> tuple[str, Evidence] | None:
    """The first reason, with the line."""
    found = next(_refusals(document.data if isinstance(document.data, dict) else {}), None)
    return (found[0], document.evidence(*found[1])) if found else None


def reference(document: Document) -> tuple[str, Evidence] | None:
    """What of the API it refers to: no static Pod may, since there may be no API server (kubelets from 1.34 on ask)."""
    spec: dict[str, Any] = document.get("spec", default={})
    for key, what in (("serviceAccountName", "ServiceAccount"), ("imagePullSecrets", "Secret")):
        named = spec.get(key)
        if named if isinstance(named, str) else any((one or {}).get("name") for one in named or []):
            return f"a {what}", document.evidence("spec", key)
    for index, volume in enumerate(spec.get("volumes") or []):
        for key, what in API_VOLUMES.items():
            if volume.get(key) is not None:
                return f"a {what}", document.evidence("spec", "volumes", index, key)
        for source in (volume.get("projected") or {}).get("sources") or []:
            asked = [name for name, value in (source or {}).items() if name != "downwardAPI" and value is not None]
            if asked:
                return f"a {asked[0]}", document.evidence("spec", "volumes", index, "projected")
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or []):
            where: Path = ("spec", kind, index)
            for place, item in enumerate(container.get("env") or []):
                for key, what in API_VALUES.items():
                    if (item.get("valueFrom") or {}).get(key):
                        return f"a {what}", document.evidence(*where, "env", place, "valueFrom", key)
            for place, item in enumerate(container.get("envFrom") or []):
                for key, what in API_VALUES.items():
                    if (item or {}).get(key):
                        return f"a {what}", document.evidence(*where, "envFrom", place, key)
    return None


def _refusals(pod: dict[str, Any]) -> Refusals:
    if pod.get("apiVersion") != "v1":
        yield f"apiVersion is {pod.get('apiVersion')}, and a Pod's is v1", ("apiVersion",)
    for path, wanted in tables.mistyped_pod_fields(pod):
        yield f"{_named(path)} must be {wanted}", path
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if not metadata.get("name"):
        yield "metadata.name is missing", ("metadata",)
    elif not SUBDOMAIN.fullmatch(f"{metadata['name']}-node"):  # the kubelet adds its node's name first
        yield f"metadata.name {metadata['name']} is no DNS name", ("metadata", "name")
    if metadata.get("namespace") and not LABEL.fullmatch(metadata["namespace"]):
        yield f"metadata.namespace {metadata['namespace']} is no DNS label", ("metadata", "namespace")
    for key, value in (metadata.get("labels") or {}).items():
        if not LABEL_VALUE.fullmatch(value or ""):
            yield f"{value} is no value of a label", ("metadata", "labels", key)
    if not spec.get("containers"):
        yield "spec.containers is missing or empty (truncated?)", ("spec",)
    if spec.get("priorityClassName") and not SUBDOMAIN.fullmatch(spec["priorityClassName"]):
        yield f"priorityClassName {spec['priorityClassName']} is no DNS name", ("spec", "priorityClassName")
    yield from _chosen(spec, ("restartPolicy", "dnsPolicy"), ("spec",))
    yield from _volumes(spec)
    yield from _seccomp(spec, ("spec",))
    names = set()
    for key in ("initContainers", "containers"):
        for index, item in enumerate(spec.get(key) or []):
            container = item or {}
            if container.get("name") in names:
                yield f"two containers are called {container.get('name')}", ("spec", key, index, "name")
            names.add(container.get("name"))
            yield from _container(container, spec, ("spec", key, index))


def _volumes(spec: dict[str, Any]) -> Refusals:
    names = set()
    for index, volume in enumerate(spec.get("volumes") or []):
        where: Path = ("spec", "volumes", index)
        name = (volume or {}).get("name") or ""
        if not LABEL.fullmatch(name):
            yield f"{name or 'nothing'} is no name of a volume: lower case, digits and hyphens", (*where, "name")
        if name in names:
            yield f"two volumes are called {name}", (*where, "name")
        names.add(name)
        known = tables.pod_fields("Volume") - {"name"}
        sources = [key for key, value in (volume or {}).items() if key in known and value is not None]
        if "hostPath" not in sources:
            continue
        path, kind = volume["hostPath"].get("path") or "", volume["hostPath"].get("type") or ""
        if len(sources) > 1:
            yield f"volume {name} has two sources: {', '.join(sources)}", where
        if not path or ".." in path.split("/"):
            yield f"the hostPath of volume {name} has no path, or one with ..", (*where, "hostPath", "path")
        if kind not in HOST_PATH_TYPES:
            yield f"{kind} is no type of a hostPath", (*where, "hostPath", "type")


def _container(container: dict[str, Any], spec: dict[str, Any], where: Path) -> Refusals:
    for key in ("name", "image"):
        if not container.get(key):
            yield f"container {where[-1]} has no {key} (truncated?)", (*where, key)
    if not LABEL.fullmatch(container.get("name") or ""):
        yield f"{container.get('name')} is no name of a container: lower case, digits and hyphens", (*where, "name")
    yield from _seccomp(container, where)
    yield from _chosen(container, ("imagePullPolicy", "terminationMessagePolicy"), where)
    volumes, mounted = {(volume or {}).get("name") for volume in spec.get("volumes") or []}, set()
    for index, mount in enumerate(container.get("volumeMounts") or []):
        at: Path = (*where, "volumeMounts", index)
        name, path = (mount or {}).get("name"), (mount or {}).get("mountPath")
        if name not in volumes:
            yield f"there is no volume {name} to mount (truncated?)", (*at, "name")
        if not path:
            yield f"the mount of volume {name} has no mountPath", at
        if path in mounted:
            yield f"two volumes are mounted at {path}", (*at, "mountPath")
        mounted.add(path)
    for index, item in enumerate(container.get("env") or []):
        if not (item or {}).get("name"):
            yield "an environment variable has no name", (*where, "env", index)
        elif item.get("value") and item.get("valueFrom"):
            yield f"{item['name']} has a value and a valueFrom", (*where, "env", index, "valueFrom")
    yield from _ports(container.get("ports") or [], spec.get("hostNetwork") is True, (*where, "ports"))
    yield from _resources(container.get("resources") or {}, (*where, "resources"))
    for kind in PROBES:
        if container.get(kind) is not None:
            yield from _probe(container[kind], (*where, kind))


def _ports(ports: list[Any], host_network: bool, where: Path) -> Refusals:
    seen = set()
    for index, item in enumerate(ports):
        port = item or {}
        yield from _port(port, host_network, (*where, index))
        on_host = port.get("hostPort") or (port.get("containerPort") if host_network else None)
        here = (port.get("protocol") or "TCP", port.get("hostIP") or "", on_host)
        for key in filter(None, (port.get("name"), on_host and here)):
            if key in seen:
                told = key if isinstance(key, str) else "/".join(map(str, filter(None, key)))
                yield f"the port {told} is given twice", (*where, index)
            seen.add(key)


def _port(port: dict[str, Any], host_network: bool, where: Path) -> Refusals:
    number, on_host = port.get("containerPort"), port.get("hostPort")
    if not _number(number):
        yield f"{number} is no port", (*where, "containerPort")
    if on_host and host_network and on_host != number:
        yield f"hostPort {on_host} is not containerPort {number}, in the host's network", (*where, "hostPort")
    if port.get("name") and not _port_name(port["name"]):
        yield f"{port['name']} is no name of a port", (*where, "name")
    yield from _chosen(port, ("protocol",), where)


def _probe(probe: dict[str, Any], where: Path) -> Refusals:
    actions = [action for action in ("httpGet", "tcpSocket", "exec", "grpc") if probe.get(action) is not None]
    if len(actions) != 1:
        yield f"a probe has one action, and this has {' and '.join(actions) or 'none'}", where
    for action in ("httpGet", "tcpSocket"):
        port = (probe.get(action) or {}).get("port")
        if action in actions and not (_port_name(port) if isinstance(port, str) else _number(port)):
            yield f"{port!r} is no port of a probe: a number, or the name of one with a letter in it", (
                *where, action, "port",
            )  # fmt: skip
    yield from _chosen(probe.get("httpGet") or {}, ("scheme",), (*where, "httpGet"))
    if where[-1] != "readinessProbe" and (probe.get("successThreshold") or 1) != 1:
        yield f"the successThreshold of a {where[-1]} must be 1", (*where, "successThreshold")
    for key in sorted(tables.pod_fields("Probe") & probe.keys()):
        if isinstance(probe[key], int) and probe[key] < 0:
            yield f"{key} is below 0", (*where, key)


def _resources(resources: dict[str, Any], where: Path) -> Refusals:
    for kind in ("limits", "requests"):
        for name in resources.get(kind) or {}:
            if (quantity(resources[kind][name]) or 0) < 0:
                yield f"{resources[kind][name]} of {name} is below 0", (*where, kind, name)
            if name not in RESOURCES and not str(name).startswith("hugepages-") and "/" not in str(name):
                yield f"{name} is no resource: {', '.join(RESOURCES)}, or a name with a domain", (*where, kind, name)
    limits = resources.get("limits") or {}
    for key, value in (resources.get("requests") or {}).items():
        wanted, limit = quantity(value), quantity(limits.get(key))
        if wanted is not None and limit is not None and wanted > limit * (1 + 1e-9):  # 1.15 and 1150m are the same
            yield f"{value} of {key} are requested, and {limits[key]} are the limit", (*where, "requests", key)


def _seccomp(holder: dict[str, Any], where: Path) -> Refusals:
    profile = (holder.get("securityContext") or {}).get("seccompProfile")
    if profile is not None and profile.get("type") not in SECCOMP:
        at: Path = (*where, "securityContext", "seccompProfile", "type")
        yield f"a seccompProfile is of one type of {', '.join(SECCOMP)}", at


def _chosen(holder: dict[str, Any], keys: tuple[str, ...], where: Path) -> Refusals:
    for key in keys:
        value = holder.get(key)
        if value and value not in CHOICES[key]:
            yield f"{key} is {value}, and one of {', '.join(CHOICES[key])} is known", (*where, key)


def _number(port: object) -> bool:
    return isinstance(port, int | float) and 0 < port < 1 << 16  # 80.0 is read as a whole number


def _port_name(name: str) -> bool:
    return PORT_NAME.fullmatch(name) is not None and "--" not in name


def _named(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
