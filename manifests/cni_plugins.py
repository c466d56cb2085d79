"""Which DaemonSet belongs to which CNI plugin: what tells a network that is installed from a leftover."""

from __future__ import annotations

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
WRAPPERS = ("multus", "multus-shim", "multus-cni")


def plugin_of(daemon_set: str) -> str:
    """The plugin type that a DaemonSet installs, "" for any other."""
    return next((plugin for plugin, names in DAEMON_SETS.items() if daemon_set in names), "")
