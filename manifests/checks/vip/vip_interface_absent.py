"""The interface that a virtual address is to be put on does not exist.

A new machine type, a renamed NIC (eth0, ens192) or a copied manifest: kube-vip and keepalived stop with it. An empty
vip_interface means that kube-vip finds it itself.

Fix: name the interface that holds this node's own address.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.interfaces import interfaces
from manifests.network.keepalived import configuration
from manifests.network.kube_vip import the_kube_vip
from manifests.node import Node

SEVERITY = Severity.CRITICAL


def find(node: Node) -> Iterator[Finding]:
    wanted = [*_of_kube_vip(node), *_of_keepalived(node)]
    if not wanted:
        raise NotApplicable("neither kube-vip nor keepalived names an interface here")
    known, told = interfaces(node)
    for who, name, evidence in wanted:
        if name not in known:
            yield Finding(f"{who} is told to use {name}, which this host does not have", (evidence, told))


def _of_kube_vip(node: Node) -> Iterator[tuple[str, str, Evidence]]:
    try:
        vip = the_kube_vip(node)
    except NotApplicable:
        return
    name = vip.value("vip_interface")
    if name:
        yield "kube-vip", name, vip.evidence("vip_interface")


def _of_keepalived(node: Node) -> Iterator[tuple[str, str, Evidence]]:
    for instance in configuration(node).all("vrrp_instance"):
        found = instance.value("interface")
        if found:
            yield "keepalived", *found
