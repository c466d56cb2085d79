"""Every plugin that the network configuration names must lie where the runtime looks for it.

A missing one shows as `failed to find plugin "bridge" in path [/opt/cni/bin]` in every new Pod that is not
hostNetwork; the control plane itself is unharmed. IPAM plugins count, too, and those that a plugin delegates to:
flannel calls bridge and host-local, unless its file names others. `loopback` is built into newer runtimes.

Fix: install the plugins (package kubernetes-cni or containernetworking-plugins, or the CNI's own DaemonSet).
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.network.cni import bin_dirs, installed, used
from manifests.node import Node

SEVERITY = Severity.ERROR
EXPLAINS = ("node-network-unavailable",)
BUILT_IN = ("loopback",)


def find(node: Node) -> Iterator[Finding]:
    network = used(node)
    directories, told = bin_dirs(node)
    there = installed(node, directories)
    for program, named in network.programs():
        if program not in there:
            yield Finding(
                f"CNI plugin {program} is not in {', '.join(directories)}",
                (named, told, Evidence(directories[0], None, f"has {', '.join(sorted(there)[:12]) or 'nothing'}")),
                severity=Severity.WARNING if program in BUILT_IN else None,
            )
