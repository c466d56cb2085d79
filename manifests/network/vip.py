"""Virtual addresses and load balancers that run on the node itself: kube-vip, keepalived, haproxy."""

from __future__ import annotations

import re
from collections.abc import Iterator

from drtool.core.report import Evidence
from manifests.network.addresses import Address, address_of
from manifests.node import Node
from manifests.pod import StaticPod

KEEPALIVED = "/etc/keepalived/keepalived.conf"


def virtual_addresses(node: Node) -> dict[Address, Evidence]:
    """Every VIP that kube-vip or keepalived on this node may hold, with the line that says so."""
    return dict((*_kube_vip(node), *_keepalived(node)))


def kube_vip(node: Node) -> StaticPod | None:
    return next(
        (pod for pod in node.pods for c in pod.containers if "kube-vip" in c.image or c.name == "kube-vip"), None
    )


def _kube_vip(node: Node) -> Iterator[tuple[Address, Evidence]]:
    pod = kube_vip(node)
    for container in pod.containers if pod else ():
        for name, value, evidence in container.environment():
            if name in {"address", "vip_address"} and (address := address_of(value.partition("/")[0])):
                yield address, evidence


def _keepalived(node: Node) -> Iterator[tuple[Address, Evidence]]:
    inside = False
    for match, evidence in node.find(KEEPALIVED, r"^\s*([^#!]*)"):
        text = match[1].strip()
        inside = inside or text.startswith("virtual_ipaddress")
        if inside:
            for part in re.split(r"[\s{}]+", text):
                if address := address_of(part.partition("/")[0]):
                    yield address, evidence
        if "}" in text:
            inside = False
