"""The kubelet's --node-ip and the API server's advertised address usually lie in one network.

With several NICs and no --node-ip the kubelet reports the address of the default route, often a NAT network that is the
same on every virtual machine: logs and exec fail, and other nodes cannot reach this one. Split networks can be by
design, so this is a warning; --node-ip=:: or 0.0.0.0 leaves the choice to the kubelet. An API server that advertises
another NIC's address than the one its certificate is for was never meant to: an error.

Fix: set --node-ip in /var/lib/kubelet/kubeadm-flags.env and advertiseAddress in kubeadm's configuration.
"""

from collections.abc import Iterator
from ipaddress import ip_network

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.network.addresses import Address, address_of
from manifests.node import Node
from manifests.pki.serving import API_SERVER, serving

SEVERITY = Severity.WARNING
EXPLAINS = ("san-missing-own-address",)


def find(node: Node) -> Iterator[Finding]:
    advertised = node.apiserver.flag("advertise-address")
    address = address_of(advertised.value)
    meant = _meant(node, address) if address else None
    if meant is not None:
        yield Finding(
            f"The API server advertises {address}, while its certificate is for {meant} on another NIC",
            (advertised.evidence, node.addresses.local[meant]),
            severity=Severity.ERROR,
        )
        return
    given = node.kubelet.flag("node-ip")
    if given is None or not given.value or address is None:
        return
    own = [found for part in given.value.split(",") if (found := address_of(part.strip()))]
    if any(found.is_unspecified for found in own):
        return  # :: and 0.0.0.0 only choose the family: the kubelet finds the address itself
    same = [found for found in own if found.version == address.version]
    prefix = 24 if address.version == 4 else 64
    network = ip_network(f"{address}/{prefix}", strict=False)
    if not same or not any(found in network for found in same):
        yield Finding(
            f"The kubelet's node IP {given.value} and the advertised address {address} lie in different networks",
            (given.evidence, advertised.evidence),
        )


def _meant(node: Node, address: Address) -> Address | None:
    """The own address that the certificate is for where that is not the advertised one."""
    try:
        certificate = serving(node, API_SERVER)
        own = node.addresses.own
    except EvidenceMissing:
        return None
    if address not in own or certificate.covers(str(address)):
        return None
    same = (other for other in own if other.version == address.version and certificate.covers(str(other)))
    return next(same, None)
