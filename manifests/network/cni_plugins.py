"""Which DaemonSet belongs to which CNI plugin: what tells a network that is installed from a leftover."""

from __future__ import annotations

from drtool.core.check import EvidenceMissing
from manifests.network.cni import Network, networks
from manifests.node import Node

# The plugin type that a network configuration names first -> DaemonSets that install it.
DAEMON_SETS = {
    "calico": ("calico-node", "canal"),
    "flannel": ("kube-flannel-ds", "kube-flannel", "canal"),
    "cilium-cni": ("cilium",),
    "weave-net": ("weave-net",),
    "antrea": ("antrea-agent",),
    "aws-cni": ("aws-node",),
    "azure-vnet": ("azure-cns", "azure-cni"),
    "kube-router": ("kube-router",),
    "multus": ("kube-multus-ds", "multus"),
    "ptp": ("kindnet",),
}
OWN_ADDRESSES = {"calico", "cilium-cni", "weave-net", "aws-cni", "azure-vnet", "calico-ipam", "delegated-plugin"}
"""Types, IPAM types among them, that give out Pod addresses whatever a Node's podCIDR says."""
WRAPPERS = ("multus", "multus-shim", "multus-cni")


def plugin_of(daemon_set: str) -> str:
    """The plugin type that a DaemonSet installs, "" for any other."""
    return next((plugin for plugin, names in DAEMON_SETS.items() if daemon_set in names), "")


def gives_out_addresses(node: Node) -> Network | None:
    """The network configuration of a plugin with address management of its own; None for others, or where none is."""
    try:
        found = networks(node)
    except EvidenceMissing:
        return None
    return next((one for one in found if OWN_ADDRESSES & {name for name, _ in one.programs()}), None)
