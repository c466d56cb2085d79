"""Calico's record of addresses must cover the Pods that have them.

Calico keeps in etcd which addresses are given out. After a restore that record is older than the Pods: an address in
use may count as free and be given to a second Pod. Other plugins keep no such record here.

Fix: calicoctl ipam check, then release and restart what it names; or restart all Pods of the Nodes in question.
"""

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Any

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from snapshots.registry.cluster import Cluster, Network, evidence
from snapshots.registry.objects import Object
from snapshots.registry.tables.cells import dicts

SEVERITY = Severity.WARNING
BLOCKS = "IPAMBlock"


def find(cluster: Cluster) -> Iterator[Finding]:
    if not any(each.kind == BLOCKS for each in cluster.registry.resources.all):
        raise NotApplicable("no record of Calico's addresses here")
    blocks = [(network, block) for block in cluster.all(BLOCKS) if (network := _network(block)) is not None]
    for pod in cluster.all("Pod"):
        if pod.at("spec", "hostNetwork") or pod.at("status", "phase") not in ("Running", "Pending"):
            continue
        for listed in dicts(pod.at("status", "podIPs")):
            block = _free_in(blocks, str(listed.get("ip")))
            if block is not None:
                yield Finding(
                    f"Pod {pod.namespace}/{pod.name} has {listed.get('ip')}, which counts as free",
                    (evidence(pod, "status", "podIPs"), evidence(block, "spec", "cidr")),
                )


def _network(block: Object) -> Network | None:
    try:
        return ip_network(str(block.at("spec", "cidr")))
    except ValueError:
        return None


def _free_in(blocks: list[tuple[Network, Object]], text: str) -> Object | None:
    """The block in which an address counts as free."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    for network, block in blocks:
        if address.version == network.version and address in network:
            given: Any = block.at("spec", "allocations") or []
            place = int(address) - int(network.network_address)
            return block if place >= len(given) or given[place] is None else None
    return None
