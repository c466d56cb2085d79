"""Address arithmetic of a cluster: which ranges collide, what fits, which limit binds first, what would fit. Pure.

Facts: the controller-manager cuts --cluster-cidr into blocks of --node-cidr-mask-size (24, or 64 for IPv6), one a node;
host-local gives out a block's addresses less network, broadcast and gateway; the kubelet runs maxPods (110) a node.
kubeadm refuses a Service range of more than 20 bits or fewer than 10 addresses, and a Pod range more than 16 bits
larger than a node's block (with IPv6 the controller-manager exits, too).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from itertools import combinations

Network = IPv4Network | IPv6Network

MAX_PODS = 110
BLOCK = {4: 24, 6: 64}
NODE_BITS, SERVICE_BITS, SERVICE_LEAST = 16, 20, 10
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
UNIQUE_LOCAL = "fd00::/8"


@dataclass(frozen=True, slots=True)
class Range:
    """`what` is Pods, Services, nodes or a word of the caller's; `source` says where it was read."""

    what: str
    network: Network
    source: str


@dataclass(frozen=True, slots=True)
class Clash:
    first: Range
    second: Range


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one Pod range feeds. `binds` names the limit that is met first on a node."""

    pods: Range
    block: int
    nodes: int
    addresses_per_node: int
    pods_per_node: int
    binds: str

    @property
    def total(self) -> int:
        return self.nodes * self.pods_per_node


@dataclass(frozen=True, slots=True)
class Problem:
    """A range that Kubernetes itself would refuse, or that feeds too little."""

    range: Range
    why: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that has to fit. `block` and `max_pods` are those of the cluster; `node_count` 0 where not known."""

    pods: tuple[Range, ...]
    services: tuple[Range, ...]
    nodes: tuple[Range, ...]
    others: tuple[Range, ...] = ()
    block_ipv4: int = BLOCK[4]
    block_ipv6: int = BLOCK[6]
    max_pods: int = MAX_PODS
    node_count: int = 0

    def block(self, version: int) -> int:
        return self.block_ipv4 if version == 4 else self.block_ipv6

    @property
    def all(self) -> tuple[Range, ...]:
        return (*self.pods, *self.services, *self.nodes, *self.others)


def clashes(ranges: Iterable[Range]) -> tuple[Clash, ...]:
    """Pairs of different kinds that overlap; two networks of nodes, or a range given twice, are no clash."""
    return tuple(
        Clash(first, second)
        for first, second in combinations(ranges, 2)
        if first.what != second.what
        and first.network.version == second.network.version
        and first.network.overlaps(second.network)
    )


def capacities(layout: Layout) -> tuple[Capacity, ...]:
    return tuple(_capacity(pods, layout) for pods in layout.pods if _block_fits(pods, layout))


def _block_fits(pods: Range, layout: Layout) -> bool:
    return pods.network.prefixlen <= layout.block(pods.network.version) <= pods.network.max_prefixlen


def _capacity(pods: Range, layout: Layout) -> Capacity:
    block = layout.block(pods.network.version)
    nodes = 1 << (block - pods.network.prefixlen)
    addresses = usable(block, pods.network.version)
    limited = addresses < layout.max_pods
    return Capacity(
        pods=pods,
        block=block,
        nodes=nodes,
        addresses_per_node=addresses,
        pods_per_node=min(addresses, layout.max_pods),
        binds="the node's address block" if limited else "the kubelet's maxPods",
    )


def usable(block: int, version: int) -> int:
    """Addresses that host-local can give in a block: IPv4 less network and broadcast, each family less the gateway."""
    size = 1 << ((32 if version == 4 else 128) - block)
    return max(0, size - (3 if version == 4 else 2))


def problems(layout: Layout) -> tuple[Problem, ...]:
    return (*_pod_problems(layout), *_service_problems(layout), *_family_problems(layout))


def _pod_problems(layout: Layout) -> Iterator[Problem]:
    for pods in layout.pods:
        block = layout.block(pods.network.version)
        if block > pods.network.max_prefixlen:
            yield Problem(pods, f"a node's block of /{block} is longer than an IPv{pods.network.version} address")
            continue
        if pods.network.prefixlen > block:
            yield Problem(pods, f"smaller than one node's block (/{block}): no node gets addresses")
            continue
        if block - pods.network.prefixlen > NODE_BITS:
            yield Problem(pods, f"more than {NODE_BITS} bits larger than a node's block (/{block}): kubeadm refuses it")
        capacity = _capacity(pods, layout)
        if layout.node_count > capacity.nodes:
            yield Problem(pods, f"feeds {capacity.nodes} nodes of a /{block} each, and there are {layout.node_count}")
        if capacity.addresses_per_node < layout.max_pods:
            yield Problem(
                pods, f"a /{block} has {capacity.addresses_per_node} addresses, and maxPods is {layout.max_pods}"
            )


def _service_problems(layout: Layout) -> Iterator[Problem]:
    for services in layout.services:
        bits = services.network.max_prefixlen - services.network.prefixlen
        if bits > SERVICE_BITS:
            yield Problem(services, f"{bits} bits of Service addresses: kubeadm takes at most {SERVICE_BITS}")
        if services.network.num_addresses < SERVICE_LEAST:
            yield Problem(services, f"too small: kubeadm wants at least {SERVICE_LEAST} Service addresses")


def _family_problems(layout: Layout) -> Iterator[Problem]:
    for ranges in (layout.pods, layout.services):
        versions = [one.network.version for one in ranges]
        if len(versions) > 2 or len(set(versions)) != len(versions):
            yield Problem(ranges[-1], "one range a family, two at the most (dual stack)")
    pods = {one.network.version for one in layout.pods}
    services = {one.network.version for one in layout.services}
    if layout.pods and layout.services and not services <= pods:
        yield Problem(layout.services[0], "a family of Services that no Pod has")


def propose(
    node_count: int, pods_per_node: int, avoid: Sequence[Network] = (), dual_stack: bool = False
) -> Layout | None:
    """The smallest layout for so many nodes and Pods a node, clear of `avoid`; None where no private range is left.

    Half as many nodes again are provided for, since a cluster's Pod range cannot be changed later.
    """
    block = next(size for size in range(30, 7, -1) if usable(size, 4) >= pods_per_node)
    prefix = block - max(1, (node_count * 3 // 2 - 1).bit_length())
    prefix = max(prefix, block - NODE_BITS)
    pods = _free(prefix, avoid, 4)
    if pods is None:
        return None
    services = _free(max(12, min(20, prefix)), (*avoid, pods), 4)
    if services is None:
        return None
    found_pods, found_services = [Range("Pods", pods, "proposed")], [Range("Services", services, "proposed")]
    if dual_stack:
        six = _free(64 - min(NODE_BITS, max(8, (node_count * 3 // 2).bit_length())), avoid, 6)
        wide = _free(112, (*avoid, *([six] if six else [])), 6)
        if six is None or wide is None:
            return None
        found_pods.append(Range("Pods", six, "proposed"))
        found_services.append(Range("Services", wide, "proposed"))
    return Layout(
        tuple(found_pods),
        tuple(found_services),
        tuple(Range("nodes", network, "avoided") for network in avoid),
        block_ipv4=block,
        max_pods=pods_per_node,
        node_count=node_count,
    )


def _free(prefix: int, taken: Iterable[Network], version: int) -> Network | None:
    """The first subnet of that size in a private range that overlaps nothing taken."""
    busy = [network for network in taken if network.version == version]
    for text in PRIVATE if version == 4 else (UNIQUE_LOCAL,):
        private = ip_network(text)
        if private.prefixlen > prefix:
            continue
        found = _first_clear(private, prefix, busy)
        if found is not None:
            return found
    return None


def _first_clear(private: Network, prefix: int, busy: Sequence[Network]) -> Network | None:
    """Steps over whatever is in the way, so that the time depends on the number of taken ranges only."""
    step = 1 << (private.max_prefixlen - prefix)
    at = int(private.network_address)
    end = int(private.broadcast_address)
    while at + step - 1 <= end:
        candidate = type(private)((at, prefix))
        blocking = next((one for one in busy if one.overlaps(candidate)), None)
        if blocking is None:
            return candidate
        after = int(blocking.broadcast_address) + 1
        at = max(at + step, -(-after // step) * step)
    return None
