"""Where a cluster's own objects say that its API server is."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import yaml

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from snapshots.registry.cluster import Cluster, evidence
from snapshots.registry.objects import at
from snapshots.registry.tables.cells import dicts

CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host, an address or a name, and where it stands."""

    host: str
    source: Evidence

    @property
    def version(self) -> int:
        """4 or 6, 0 for a name."""
        try:
            return ip_address(self.host).version
        except ValueError:
            return 0

    @property
    def is_address(self) -> bool:
        return self.version != 0


def control_plane_endpoint(cluster: Cluster) -> Endpoint | None:
    """kubeadm's controlPlaneEndpoint; None where the cluster has none. EvidenceMissing without kubeadm-config."""
    document, found = cluster.kubeadm()
    text = str(document.get("controlPlaneEndpoint") or "")
    if not text:
        return None
    host = urlsplit(f"//{text}").hostname or text
    return Endpoint(host, Evidence(evidence(found).path, text=f"controlPlaneEndpoint: {text}"))


def named_by(cluster: Cluster, config_map: str, key: str, namespace: str) -> Endpoint:
    """The server of the kubeconfig that a ConfigMap holds."""
    document, found = cluster.document(config_map, key, namespace)
    servers = [str(at(each, "cluster", "server") or "") for each in dicts(document.get("clusters"))]
    host = urlsplit(servers[0]).hostname if servers else None
    if not host:
        raise EvidenceMissing(f"ConfigMap {namespace}/{config_map} names no server")
    return Endpoint(host, Evidence(evidence(found).path, text=f"server: {servers[0]}"))


def cluster_info(cluster: Cluster) -> Endpoint:
    return named_by(cluster, "cluster-info", "kubeconfig", "kube-public")


def kube_proxy(cluster: Cluster) -> Endpoint:
    return named_by(cluster, "kube-proxy", "kubeconfig.conf", "kube-system")


def advertised(cluster: Cluster) -> dict[str, Evidence]:
    """Addresses that API servers are known to have: endpoints of the Service kubernetes, control-plane Nodes, files."""
    found: dict[str, Evidence] = dict(cluster.servers)
    for each in cluster.all("EndpointSlice"):
        if each.namespace == "default" and each.labels.get("kubernetes.io/service-name") == "kubernetes":
            for end in dicts(each.body.get("endpoints")):
                found |= {str(address): evidence(each, "endpoints") for address in end.get("addresses") or ()}
    legacy = cluster.get("Endpoints", "kubernetes", "default")
    for subset in dicts(legacy.body.get("subsets")) if legacy else ():
        found |= {str(each.get("ip")): evidence(legacy, "subsets") for each in dicts(subset.get("addresses")) if legacy}
    for node in cluster.all("Node"):
        if any(label in node.labels for label in CONTROL_PLANE):
            addresses = dicts(node.at("status", "addresses"))
            found |= {str(each.get("address")): evidence(node, "status", "addresses") for each in addresses}
    return found


def contradiction(cluster: Cluster, named: Endpoint) -> tuple[Evidence, ...]:
    """What speaks against `named`; () where it may well be right.

    A name may resolve to the address that another place has, so only addresses of one family contradict each other, or
    the API server's certificate, which is valid for no other.
    """
    known = advertised(cluster)
    endpoint = control_plane_endpoint(cluster)
    if named.host in known or not named.is_address or (endpoint and named.host == endpoint.host):
        return ()
    if endpoint is not None:
        unheard = bool(cluster.named) and named.host not in cluster.named
        return (endpoint.source,) if named.version == endpoint.version or (unheard and not endpoint.version) else ()
    same = {host: source for host, source in known.items() if Endpoint(host, source).version == named.version}
    if not same:
        raise EvidenceMissing("no object tells an API server's address of that family")
    return tuple(dict.fromkeys(same.values()))


def loaded(text: str) -> Any:
    """YAML that an object holds as text; None for what is none."""
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        return None
