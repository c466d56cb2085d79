"""The hostname must be a valid node name and resolve to an address of this host.

A node's name is its hostname in lower case, at most 253 characters of a-z, 0-9, dash and dot. kubeadm warns where it
does not resolve. Two hosts with one name become one node that flaps.

Fix: `hostnamectl set-hostname NAME`, and a line for it in /etc/hosts or DNS.
"""

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
KUBEADM = ("Hostname",)
VALID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def find(node: Node) -> Iterator[Finding]:
    if not node.hostname:
        raise EvidenceMissing("the hostname is not in this tree")
    name = node.hostname.lower()
    here = Evidence("/etc/hostname", 1, node.hostname)
    if name in {"localhost", "localhost.localdomain"}:
        yield Finding(f"The hostname is {name}: every such host would be the same node", (here,), Severity.ERROR)
    elif len(name) > 253 or not VALID.fullmatch(name):
        yield Finding(f"{node.hostname} is no valid node name", (here,), Severity.ERROR)
    addresses = node.resolve(name)
    if not addresses:
        yield Finding(f"{name} is not in /etc/hosts; only DNS could resolve it, which was not asked", (here,))
    elif all(address.is_loopback for address in addresses):
        yield Finding(f"{name} resolves to loopback only", tuple(evidence for _, evidence in node.hosts[name]))
