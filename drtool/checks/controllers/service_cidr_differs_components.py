"""API server and controller-manager must be given the same Service range, on every control plane.

The API server hands out Service addresses, the controller-manager keeps them out of the nodes' Pod ranges. With two
ranges Services get addresses that nobody routes, and API servers that differ take each other's Services for faulty.

Fix: make --service-cluster-ip-range in kube-controller-manager.yaml equal to the one in kube-apiserver.yaml, on every
control plane.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from drtool.checks import Case
from drtool.core.report import Finding, Severity
from manifests.peers import same_cluster
from manifests.pod import Flag

SEVERITY = Severity.ERROR


def find(case: Case) -> Iterator[Finding]:
    node = case.node
    served = node.apiserver.flag("service-cluster-ip-range")
    controlled = node.controller_manager.flag("service-cluster-ip-range")
    if _networks(served) != _networks(controlled):
        yield Finding(
            f"The API server serves Services from {served.value}, the controller-manager has {controlled.value}",
            (served.evidence, controlled.evidence),
        )
    for other in same_cluster(node, case.others):
        apiserver = other.components.get("kube-apiserver")
        if apiserver is not None and apiserver.has("service-cluster-ip-range"):
            theirs = apiserver.flag("service-cluster-ip-range")
            if _networks(served) != _networks(theirs):
                title = f"The API server serves Services from {served.value}, that of {other.name} from {theirs.value}"
                yield Finding(title, (served.evidence, theirs.evidence))


def _networks(flag: Flag) -> list[IPv4Network | IPv6Network | str]:
    """In order (the first family is the primary one), as networks, so that formatting does not matter."""
    found: list[IPv4Network | IPv6Network | str] = []
    for part in flag.value.split(","):
        try:
            found.append(ip_network(part.strip(), strict=False))
        except ValueError:
            found.append(part.strip())
    return found
