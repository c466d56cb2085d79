"""The networks that the host's own NICs are in, from the kernel's routing table."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network

from drtool.core.report import Evidence
from manifests.network.addresses import address_of
from manifests.node import Node

CONTAINERS = (
    "cni",
    "docker",
    "flannel",
    "cali",
    "vxlan",
    "tunl",
    "cilium",
    "lxc",
    "veth",
    "br-",
    "kube",
    "virbr",
    "lo",
)


def host_networks(node: Node) -> Iterator[tuple[IPv4Network | IPv6Network, Evidence]]:
    """/proc/net/route: destination, gateway and mask are hexadecimal in the host's byte order (little-endian).

    Routes over a gateway, the default route, and those on interfaces that container networks make are left out. Where
    the table is not in the tree, the advertised address stands for the node's network.
    """
    entry = node.entry("/proc/net/route")
    if entry.data is None:
        yield from _advertised(node)
        return
    for number, line in enumerate(entry.data.decode("ascii", "replace").splitlines()[1:], 2):
        fields = line.split()
        if len(fields) < 8 or fields[0].startswith(CONTAINERS) or fields[2] != "00000000":
            continue
        try:
            network = IPv4Network((_address(fields[1]), str(_address(fields[7]))))
        except ValueError:
            continue
        if network.prefixlen:
            yield network, Evidence(entry.path, number, f"{fields[0]} {network}")


def _address(text: str) -> IPv4Address:
    return IPv4Address(int.from_bytes(bytes.fromhex(text), "little"))


def _advertised(node: Node) -> Iterator[tuple[IPv4Network | IPv6Network, Evidence]]:
    apiserver = node.components.get("kube-apiserver")
    for flag in apiserver.all("advertise-address") if apiserver else ():
        address = address_of(flag.value)
        if address is not None:
            yield ip_network(str(address)), flag.evidence
