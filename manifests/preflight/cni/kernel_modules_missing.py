"""Kernel modules that this network plugin asks for, told from its own files.

Kubernetes itself asks for none. Bridge plugins (bridge, flannel) with iptables want br_netfilter and
net.bridge.bridge-nf-call-iptables = 1.

Fix: name the module in a file of /etc/modules-load.d and `modprobe` it.
"""

import re
from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
BRIDGES = re.compile(rb'"type"\s*:\s*"(bridge|flannel)"')


def find(node: Node) -> Iterator[Finding]:
    asking = [e for e in node.capture.below("/etc/cni/net.d") if e.data and BRIDGES.search(e.data)]
    if not asking:
        raise NotApplicable("no network plugin's configuration here asks for a module")
    loaded = {line.split()[0] for line in node.text("/proc/modules").splitlines() if line.strip()}
    bridge = node.entry("/proc/sys/net/bridge/bridge-nf-call-iptables")
    if "br_netfilter" not in loaded and bridge.kind == "absent":
        yield Finding(
            "The network plugin bridges Pods, and br_netfilter is not loaded",
            (Evidence(asking[0].path), Evidence("/proc/modules", None, "no br_netfilter")),
            fix=Fix("drtool preflight --fix", "loads br_netfilter now and at boot"),
        )
