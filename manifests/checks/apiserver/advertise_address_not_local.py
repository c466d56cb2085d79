"""The address that the API server advertises must be one that this host has.

Pods reach the API server through the `kubernetes` Service, whose endpoint is --advertise-address; kubeadm's probes dial
it too. A virtual address is odd here, but works while this node holds it.

Fix: correct --advertise-address in kube-apiserver.yaml, and re-issue apiserver.crt when it lacks the address.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.network.addresses import address_of
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("san-missing-own-address", "probe-target-mismatch")


def find(node: Node) -> Iterator[Finding]:
    advertised = node.apiserver.flag("advertise-address")
    address = address_of(advertised.value)
    if address is not None and not node.addresses.has(address):
        yield Finding(
            f"The API server advertises {address}, which this host does not have",
            evidence=(advertised.evidence, *node.addresses.evidence()),
        )
