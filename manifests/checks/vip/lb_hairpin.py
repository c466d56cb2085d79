"""This control plane reaches itself through a layer-4 balancer that cannot send a flow back to where it came from.

One in n requests to the endpoint hangs, always from control planes and never from workers: the balancer chose the very
node that asked. The local API server is well. A name for the endpoint that /etc/hosts maps to 127.0.0.1 or to the own
address is the known way around it, and healthy.

Fix: map the endpoint's name to this node's own address in /etc/hosts on every control plane, or point kubelet.conf to
the local API server (ControlPlaneKubeletLocalMode).
"""

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.identity import members
from manifests.kubeconfig import Kubeconfig
from manifests.messages import said
from manifests.network.addresses import address_of
from manifests.network.balancer import binds
from manifests.network.vip import virtual_addresses
from manifests.node import Node

SEVERITY = Severity.ERROR
SYMPTOM = True


def find(node: Node) -> Iterator[Finding]:
    if not node.layout.control_plane:
        raise NotApplicable(f"a {node.layout} node is behind no balancer")
    config = _through_balancer(node)
    if not node.journal("kubelet") and not node.container_logs:
        raise EvidenceMissing("no log to show requests that hang")
    hung = _dialled(node, config, r"i/o timeout|TLS handshake timeout|context deadline exceeded")
    down = _dialled(node, config, r"connection refused|no route to host")
    if hung and not down:
        yield Finding(
            f"Requests from this control plane to the balancer {config.server} hang",
            (config.server_evidence, hung[-1]),
        )


def _through_balancer(node: Node) -> Kubeconfig:
    """The kubeconfig that leads to a balancer elsewhere: not this host, no member, no address announced from here."""
    if binds(node) or virtual_addresses(node):
        raise NotApplicable("the balancer runs on this node")
    others = {address for addresses in members(node).values() for address in addresses}
    for name in ("kubelet.conf", "admin.conf"):
        config = node.kubeconfigs.get(f"/etc/kubernetes/{name}")
        if config is None or not config.host:
            continue
        found = node.resolve(config.host)
        own = any(node.addresses.has(address) or address in others for address in found)
        if not own and (found or address_of(config.host) is None):
            return config
    raise NotApplicable("no kubeconfig leads through a balancer")


def _dialled(node: Node, config: Kubeconfig, outcome: str) -> tuple[Evidence, ...]:
    host = re.escape(config.host)
    lines = said(node, rf"(?:{outcome})", "kubelet", "kube-controller-manager", "kube-scheduler")
    return tuple(line.evidence for line in lines if re.search(rf"(?<![\w.-])\[?{host}\]?:{config.port}\b", line.text))
