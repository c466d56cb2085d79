"""The cluster as its objects tell it: what the checks over objects weigh. Kinds are read when first asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

import yaml

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from snapshots.registry.objects import Object, Registry
from snapshots.registry.resources import Resource
from snapshots.registry.tables.cells import dicts, moment

SYSTEM = "kube-system"
OWN_IPAM = ("ippools.crd.projectcalico.org", "ipamblocks.crd.projectcalico.org", "ciliumnodes.cilium.io")
"""CRDs of network plugins that give out Pod addresses by themselves, whatever a Node's podCIDR says."""
Network = IPv4Network | IPv6Network


@dataclass(frozen=True)
class Cluster:
    """The objects of one source. `all` and `get` raise EvidenceMissing where an object of the kind cannot be read.

    What the files of the node tell that holds the db: `saved` are kubeadm's documents by kind, at `saved_path`;
    `servers` are addresses of API servers, `named` all names and addresses in this one's certificate.
    """

    registry: Registry
    _read: dict[str, tuple[Object, ...]] = field(default_factory=dict, repr=False)
    saved: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    saved_path: str = ""
    servers: Mapping[str, Evidence] = field(default_factory=dict)
    named: frozenset[str] = frozenset()

    def all(self, kind: str) -> tuple[Object, ...]:
        """Every object of a kind of the API's own, by its name as in YAML."""
        if kind not in self._read:
            self._read[kind] = tuple(self.registry.objects(self._resource(kind)))
        return tuple(_readable(each) for each in self._read[kind])

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        found = next(self.registry.objects(self._resource(kind), namespace, name), None)
        return _readable(found) if found else None

    def _resource(self, kind: str) -> Resource:
        return next(each for each in self.registry.resources.all if each.kind == kind)

    def nodes(self) -> tuple[Object, ...]:
        """Raises EvidenceMissing where there is none: an empty db, or one under another prefix."""
        found = self.all("Node")
        if not found:
            raise EvidenceMissing(f"{self.registry.name} holds no Node")
        return found

    def config_map(self, name: str, namespace: str = SYSTEM) -> Object:
        found = self.get("ConfigMap", name, namespace)
        if found is None:
            raise EvidenceMissing(f"{self.registry.name} holds no ConfigMap {namespace}/{name}")
        return found

    def document(self, name: str, key: str, namespace: str = SYSTEM) -> tuple[dict[str, Any], Object]:
        """The YAML under a key of a ConfigMap, and the ConfigMap."""
        found = self.config_map(name, namespace)
        text = found.at("data", key)
        if not isinstance(text, str):
            raise EvidenceMissing(f"ConfigMap {namespace}/{name} has no {key}")
        try:
            document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe one
        except yaml.YAMLError as wrong:
            raise EvidenceMissing(f"ConfigMap {namespace}/{name}: {key} is no YAML") from wrong
        if not isinstance(document, dict):
            raise EvidenceMissing(f"ConfigMap {namespace}/{name}: {key} is no mapping")
        return document, found

    def kubeadm(self) -> tuple[dict[str, Any], Object]:
        """ClusterConfiguration; EvidenceMissing where kubeadm did not make this cluster."""
        return self.document("kubeadm-config", "ClusterConfiguration")

    def components(self, program: str) -> tuple[Object, ...]:
        """The mirror Pods of a control-plane program, one a node."""
        pods = self.all("Pod")
        return tuple(pod for pod in pods if pod.namespace == SYSTEM and pod.labels.get("component") == program)

    def now(self) -> datetime:
        """The newest time that a lease was renewed: when the db was written, as far as it tells."""
        times = (moment(each.at("spec", "renewTime")) for each in self.all("Lease"))
        newest = max(filter(None, times), default=None)
        if newest is None:
            raise EvidenceMissing("no lease tells when this db was written")
        return newest

    def owns_addresses(self) -> str:
        """The CRD of a plugin that gives out Pod addresses by itself; "" where Nodes' podCIDRs do."""
        names = {each.name for each in self.all("CustomResourceDefinition")}
        return next((name for name in OWN_IPAM if name in names), "")


def _readable(found: Object) -> Object:
    if found.trouble:
        raise EvidenceMissing(f"{found.key.decode('utf-8', 'replace')}: {found.trouble}")
    return found


def evidence(found: Object, *path: str | int) -> Evidence:
    """The object's key in etcd, and the field at `path`."""
    if not path:
        return Evidence(found.key.decode("utf-8", "replace"), text=str(found))
    value = found.at(*path)
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Evidence(found.key.decode("utf-8", "replace"), text=f"{'.'.join(map(str, path))}: {shown}")


def pod_networks(node: Object) -> Iterator[Network]:
    """The Node's podCIDRs; what is no range is left out."""
    listed = node.at("spec", "podCIDRs") or [node.at("spec", "podCIDR")]
    for text in listed if isinstance(listed, list) else ():
        try:
            yield ip_network(str(text), strict=False)
        except ValueError:
            continue


def flags(pod: Object, program: str) -> dict[str, str]:
    """`--name=value` of the container that runs `program`."""
    container = next((each for each in dicts(pod.at("spec", "containers")) if each.get("name") == program), {})
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    pairs = (str(word)[2:].partition("=") for word in words if str(word).startswith("--"))
    return {name: value for name, _, value in pairs}


def image_version(pod: Object, program: str) -> tuple[int, int, int] | None:
    container = next((each for each in dicts(pod.at("spec", "containers")) if each.get("name") == program), {})
    return version(str(container.get("image", "")).partition("@")[0].rpartition(":")[2])


def version(text: str) -> tuple[int, int, int] | None:
    """`v1.37.2`, with or without what follows a hyphen or a plus; None for anything else."""
    numbers = text.removeprefix("v").partition("-")[0].partition("+")[0].split(".")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        return None
    major, minor, patch = map(int, numbers)
    return major, minor, patch


def dotted(numbers: tuple[int, ...]) -> str:
    return "v" + ".".join(map(str, numbers))
