"""A load balancer on this host must not listen where the API server does.

haproxy or nginx with `bind *:6443` beside an API server that binds every address on 6443: whichever starts second dies
with `address already in use`, or clients meet the balancer with no backend. A balancer on another port, or bound to the
VIP only while the API server binds the node's address, is fine.

Fix: move the balancer to another port (controlPlaneEndpoint with it), or bind it to the VIP alone.
"""

import re
from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.network.addresses import Address, address_of
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("ports-in-use", "container-exited", "component-not-ready")
BINDS = {
    "/etc/haproxy/haproxy.cfg": r"^\s*bind\s+(\S*?):(\d+)",
    "/etc/nginx/nginx.conf": r"^\s*listen\s+(?:(\S+?):)?(\d+)",
}


def find(node: Node) -> Iterator[Finding]:
    apiserver = node.apiserver
    port = apiserver.value("secure-port", "6443")
    bound = address_of(apiserver.value("bind-address", "0.0.0.0"))  # noqa: S104 - the program's default
    at = apiserver.flag("secure-port").evidence if apiserver.has("secure-port") else apiserver.image_evidence
    for path, pattern in BINDS.items():
        for match, evidence in _binds(node, path, pattern):
            if match[2] == port and _same(bound, match[1] or "*"):
                yield Finding(f"{path} listens on {match[1] or '*'}:{port}, and so does the API server", (evidence, at))


def _binds(node: Node, path: str, pattern: str) -> Iterator[tuple[re.Match[str], Evidence]]:
    paths = [path, *(e.path for e in node.capture.matching(r"/etc/haproxy/conf\.d/[^/]+\.cfg"))]
    for place in paths if "haproxy" in path else [path]:
        yield from node.find(place, pattern)


def _same(bound: Address | None, other: str) -> bool:
    address = address_of(other)
    anywhere = other in {"*", ""} or (address is not None and address.is_unspecified)
    return anywhere or bound is None or bound.is_unspecified or bound == address
