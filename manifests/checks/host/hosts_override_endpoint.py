"""/etc/hosts must not send the cluster's endpoint to an address that is nobody's.

A name for the endpoint is often pinned in /etc/hosts, and forgotten when the load balancer or the first control plane
moves. Pinning it to 127.0.0.1 or to this node's own address is the known way around a balancer that cannot send a flow
back to where it came from, and is right.

Fix: correct or remove the line in /etc/hosts.
"""

import re
from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.identity import certified, endpoint, members
from manifests.kubeconfig import split_url
from manifests.network.addresses import Address, address_of
from manifests.network.vip import virtual_addresses
from manifests.node import Node

SEVERITY = Severity.ERROR
EXPLAINS = ("lb-hairpin", "component-not-ready")


def find(node: Node) -> Iterator[Finding]:
    name = _endpoint_name(node)
    for address, evidence in node.hosts.get(name.lower(), ()):
        if node.addresses.has(address) or address in _somebodys(node):
            continue
        failed = _refused(node, address)
        was_own = address in certified(node)
        if failed or was_own or _contradicted(node, address):
            why = "this node's former address" if was_own else "nobody answers there"
            yield Finding(
                f"/etc/hosts sends the endpoint {name} to {address}: {why}",
                (evidence, *failed[-1:], *node.addresses.evidence()),
            )


def _endpoint_name(node: Node) -> str:
    """The endpoint's name by kubeadm's configuration, else by the kubeconfigs; NotApplicable where it is an address."""
    hosts = [split_url(endpoint(node))[0], *(config.host for config in node.kubeconfigs.values())]
    names = [host for host in hosts if host and address_of(host) is None and host != "localhost"]
    if not names:
        raise NotApplicable("the cluster's endpoint is no name")
    return names[0]


def _somebodys(node: Node) -> set[Address]:
    found = {address for addresses in members(node).values() for address in addresses}
    return found | set(virtual_addresses(node))


def _contradicted(node: Node, address: Address) -> bool:
    """A virtual address that this very node announces is where the endpoint lives; another one is stale."""
    return bool(virtual_addresses(node)) and address not in virtual_addresses(node)


def _refused(node: Node, address: Address) -> tuple[Evidence, ...]:
    """Lines in which a program failed to dial the address."""
    dialled = re.compile(
        rf"{re.escape(str(address))}\]?:\d+.*(no route to host|i/o timeout|connection refused|unreachable)"
    )
    lines = [*node.journal("kubelet"), *(line for log in node.container_logs.values() for line in log)]
    return tuple(line.evidence for line in lines if dialled.search(line.text))
