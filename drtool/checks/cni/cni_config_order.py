"""Of several network configurations the runtime takes the first in byte order: it must be the installed plugin's.

A leftover of a former plugin, or of podman or CRI-O's packages, whose name sorts before the real one (10-bridge
before 10-calico) gives Pods addresses of another network. Files with another suffix (.bak, .disabled) do not count;
Multus comes first on purpose and calls the others.

Fix: remove the leftover, restart the runtime, and let the Pods that got an address from it be made anew.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.cni import Network, bin_dirs, installed, networks
from manifests.network.cni_plugins import WRAPPERS, plugin_of
from manifests.node import Node
from snapshots.registry.cluster import evidence

SEVERITY = Severity.ERROR
EXPLAINS = ("cni-binary-missing", "cni-bin-dir-mismatch", "node-network-unavailable")


def find(case: Case) -> Iterator[Finding]:
    usable = [network for network in networks(case.node) if not network.problem]
    if len({network.main for network in usable}) < 2 or usable[0].main in WRAPPERS:
        return
    first = usable[0]
    said = _installed(case)
    right = [network for network in usable if network.main in said] or _with_programs(case.node, usable)
    files = tuple(Evidence(network.path, None, f"type {network.main}") for network in usable[:3])
    if right and first not in right:
        yield Finding(
            f"{first.path} comes before {right[0].path}, and the installed network is {right[0].main}",
            (*files, *((said[right[0].main],) if right[0].main in said else ())),
        )
    elif not said:
        yield Finding(
            f"{len(usable)} network configurations of different plugins; the runtime takes {first.path}",
            files,
            severity=Severity.WARNING,
        )


def _with_programs(node: Node, usable: list[Network]) -> list[Network]:
    """Where nothing else tells: those whose every program is on the node."""
    try:
        there = installed(node, bin_dirs(node)[0])
    except EvidenceMissing:
        return []
    return [network for network in usable if all(name in there for name, _ in network.programs())]


def _installed(case: Case) -> dict[str, Evidence]:
    """Plugins that a DaemonSet of the cluster installs, or whose agent left a kubeconfig or state on this node."""
    found = {}
    try:
        for daemon_set in case.cluster.all("DaemonSet"):
            plugin = plugin_of(daemon_set.name)
            if plugin:
                found[plugin] = evidence(daemon_set)
    except EvidenceMissing:
        pass
    traces = {"calico": "/etc/cni/net.d/calico-kubeconfig", "flannel": "/run/flannel/subnet.env"}
    for plugin, path in traces.items():
        if plugin not in found and case.node.entry(path).kind != "absent":
            found[plugin] = Evidence(path, None, "of its agent")
    return found
