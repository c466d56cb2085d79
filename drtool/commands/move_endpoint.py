"""The plan from one node's address to a virtual address or a DNS name."""

from __future__ import annotations

from typing import Any

from drtool.commands.carrying import host, plan_of
from drtool.core.check import EvidenceMissing
from drtool.core.errors import CannotTell, Refused
from drtool.core.plan import Plan
from drtool.host.machine import Host
from drtool.host.root import Root
from drtool.plans import site
from drtool.plans.move_endpoint import Apiserver, checked, move_endpoint
from manifests.api import Api, identity, serves
from manifests.identity import cluster_name
from manifests.kubeconfig import split_url
from manifests.node import Node, read

SLICES = (
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=kubernetes"
)


def plan(root: Root, to: str) -> Plan[Host]:
    """Asks this node's API server which others there are, and each of them for its certificate.

    Raises Refused where the new endpoint leads to no API server of this cluster.
    """
    node = read(root)
    try:
        site.need_control_plane(node)
        known = _apiservers(root, node, checked(to)) if root.live else ()
        draft = move_endpoint(node, to, known)
    except EvidenceMissing as gap:
        raise CannotTell(f"the node cannot be read well enough for a plan: {gap}") from gap
    return plan_of(draft, cluster_name(node))


def _apiservers(root: Root, node: Node, to: str) -> tuple[Apiserver, ...]:
    who = identity(host(root, ""))
    name, own = split_url(f"//{to}")[0], site.own_server(node)
    if problem := serves(to, "", who.ca):
        raise Refused(
            f"no API server of this cluster answers at {to}: {problem}", "set the VIP, balancer or name up first"
        )
    found = Api(own, who).get(SLICES)
    servers = sorted(_servers(found or {}))
    return tuple(Apiserver(server, not serves(server, name, who.ca)) for server in servers)


def _servers(slices: dict[str, Any]) -> set[str]:
    """HOST:PORT of every ready endpoint of the `kubernetes` Service: each API server enters its own."""
    found = set()
    for one in slices.get("items", ()):
        ports = [port["port"] for port in one.get("ports") or ()]
        for endpoint in one.get("endpoints") or ():
            for address in endpoint.get("addresses") or ():
                shown = f"[{address}]" if ":" in address else address
                found |= {f"{shown}:{port}" for port in ports}
    return found
