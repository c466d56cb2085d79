"""The virtual address has a prefix such as /24, and the kernel uses it as the source of this node's own traffic.

etcd's members check a peer's certificate against the address that it calls from; the virtual one is in no peer
certificate, and connections are rejected while the node holds it. With /32 it is never chosen as a source.

Fix: give the address the prefix /32 (/128) in keepalived.conf or as vip_subnet; do not add it to etcd's certificates.
"""

import re
from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.messages import said
from manifests.network.addresses import Address
from manifests.network.keepalived import Virtual, virtuals
from manifests.network.kube_vip import the_kube_vip
from manifests.node import Node
from manifests.pki.serving import ETCD_PEER, serving

SEVERITY = Severity.ERROR
EXPLAINS = ("etcd-quorum-impossible",)


def find(node: Node) -> Iterator[Finding]:
    found = [*virtuals(node), *_of_kube_vip(node)]
    if not found:
        raise NotApplicable("neither keepalived nor kube-vip holds an address here")
    if "etcd" not in node.components:
        raise NotApplicable("no etcd on this node")
    for virtual in found:
        wide = virtual.prefix is not None and virtual.prefix < virtual.address.max_prefixlen
        if not wide or virtual.address in serving(node, ETCD_PEER).addresses:
            continue
        rejected = _rejected(node, virtual.address)
        yield Finding(
            f"The virtual address {virtual.address}/{virtual.prefix} serves as source address, and no peer certificate"
            " covers it",
            (virtual.evidence, serving(node, ETCD_PEER).says(_names(node)), *rejected[-1:]),
            severity=Severity.ERROR if rejected else Severity.WARNING,
        )


def _names(node: Node) -> str:
    return f"names: {', '.join(serving(node, ETCD_PEER).names())}"


def _rejected(node: Node, address: Address) -> tuple[Evidence, ...]:
    """etcd 3.4 and older write it as text, newer ones as JSON with remote-addr."""
    caller = re.compile(rf"(?<![\d.:]){re.escape(str(address))}(?![\d.])")
    lines = said(node, r"rejected connection|does not match any of DNSNames|certificate is valid for", "etcd")
    return tuple(line.evidence for line in lines if caller.search(line.text))


def _of_kube_vip(node: Node) -> Iterator[Virtual]:
    try:
        vip = the_kube_vip(node)
    except NotApplicable:
        return
    prefix = vip.value("vip_subnet", "vip_cidr").split(",")[0].strip().lstrip("/")
    if vip.address is not None and prefix.isdecimal():
        yield Virtual(vip.address, int(prefix), vip.evidence("vip_subnet", "vip_cidr"))
