"""A Node must have a range of Pod addresses.

The controller manager gives each Node a podCIDR out of --cluster-cidr. Without one, plugins that rely on it (flannel,
bridge with host-local) give Pods on that Node no address: `node "n1" pod cidr not assigned`, `open
/run/flannel/subnet.env: no such file or directory`. kubeadm sets --allocate-node-cidrs and --cluster-cidr wherever it
was given a podSubnet; a range no wider than one Node's share serves one Node. Plugins with address management of their
own (Calico, Cilium) do not read it.

Fix: set --allocate-node-cidrs and --cluster-cidr on the controller manager; where the range is used up, free the Nodes
that no longer exist, or take a wider one for a new cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.messages import last_said
from manifests.network.cni_plugins import gives_out_addresses
from manifests.node import Node
from manifests.pod import Component
from snapshots.checks.cni.podcidr_missing import find as over_objects

SEVERITY = Severity.ERROR
CONTROLLER_MANAGER = "kube-controller-manager"
USED_UP = r"no remaining CIDRs left to allocate|CIDRNotAvailable"
NOT_ASSIGNED = r"pod cidr not assigned|/run/flannel/subnet\.env: no such file"
SHARE = {4: 24, 6: 64}  # --node-cidr-mask-size of each family, by default


def find(case: Case) -> Iterator[Finding]:
    node = case.node
    own = gives_out_addresses(node)
    if own is not None:
        raise NotApplicable(f"{own.path}: the network plugin gives out addresses by itself")
    manager = node.components.get(CONTROLLER_MANAGER)
    if manager is not None:
        yield from _not_told(node, manager)
        yield from _used_up(case, manager)
    yield from over_objects(case.cluster)


def _not_told(node: Node, manager: Component) -> Iterator[Finding]:
    """The controller manager gives out nothing, and something says that it should."""
    allocates = manager.value("allocate-node-cidrs", "false").lower() in {"true", "1", "t"}
    if allocates and manager.value("cluster-cidr"):
        return
    missing = "--cluster-cidr" if allocates else "--allocate-node-cidrs"
    line = last_said(node, NOT_ASSIGNED, "kubelet", "kube-flannel", CONTROLLER_MANAGER)
    wanted = (*_pod_subnet(node), *((line.evidence,) if line else ()))
    if wanted:
        yield Finding(
            f"The controller manager gives Nodes no Pod addresses: it has no {missing}",
            (manager.image_evidence, *wanted),
        )


def _pod_subnet(node: Node) -> tuple[Evidence, ...]:
    try:
        configuration = node.cluster_configuration
    except EvidenceMissing:
        return ()
    path = ("networking", "podSubnet")
    return (configuration.evidence(*path),) if configuration.get(*path, default="") else ()


def _used_up(case: Case, manager: Component) -> Iterator[Finding]:
    text = manager.value("cluster-cidr")
    line = last_said(case.node, USED_UP, CONTROLLER_MANAGER)
    try:
        nodes = len(case.cluster.nodes())
    except EvidenceMissing:
        nodes = 0
    for part in filter(None, text.split(",")):
        shares = _shares(manager, part.strip())
        if shares is not None and (line or nodes > shares):
            yield Finding(
                f"--cluster-cidr {part} has room for {shares} Nodes" + (f", and there are {nodes}" if nodes else ""),
                (manager.flag("cluster-cidr").evidence, *((line.evidence,) if line else ())),
            )
            return


def _shares(manager: Component, text: str) -> int | None:
    """How many Nodes a range serves; None for what is no range or no number."""
    try:
        network = ip_network(text, strict=False)
        family = manager.value(f"node-cidr-mask-size-ipv{network.version}")
        mask = int(family or manager.value("node-cidr-mask-size") or SHARE[network.version])
    except ValueError:
        return None
    return 1 << (mask - network.prefixlen) if mask >= network.prefixlen else 0
