"""Pod, Service and node addresses must not overlap.

Three parties hand them out and never talk to each other: the network plugin, the API server, and whoever made the
nodes' network. Where two ranges overlap, some connections go to the wrong place, and it looks random.

Fix: ranges of a running cluster cannot simply be changed; `drtool addresses` shows which limit binds and what fits.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.routes import host_networks
from manifests.node import Node

SEVERITY = Severity.ERROR
Range = tuple[str, IPv4Network | IPv6Network, Evidence]


def find(node: Node) -> Iterator[Finding]:
    pods = list(_flag_ranges(node, "kube-controller-manager", "cluster-cidr", "Pods"))
    services = list(_flag_ranges(node, "kube-apiserver", "service-cluster-ip-range", "Services"))
    if not pods and not services:
        raise EvidenceMissing("neither --cluster-cidr nor --service-cluster-ip-range is known")
    for (one, first, here), (other, second, there) in combinations((*pods, *services, *_own(node)), 2):
        if one != other and first.version == second.version and first.overlaps(second):
            yield Finding(f"{one} ({first}) and {other} ({second}) overlap", (here, there))


def _flag_ranges(node: Node, program: str, name: str, what: str) -> Iterator[Range]:
    component = node.components.get(program)
    for flag in component.all(name) if component else ():
        for part in flag.value.split(","):
            try:
                yield what, ip_network(part.strip(), strict=False), flag.evidence
            except ValueError:
                continue


def _own(node: Node) -> Iterator[Range]:
    """The networks of the host's own NICs; what a network plugin or a container bridge put there is left out."""
    for network, evidence in host_networks(node):
        yield "the node's own network", network, evidence
