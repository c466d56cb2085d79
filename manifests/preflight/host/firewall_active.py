"""A firewall is enabled: the ports of the control plane must be open in it.

Between control planes 6443, 2379, 2380 and 10250; on every node 10250, 10256 and the NodePorts; what the network plugin
uses besides. Blocked ports show as timeouts, never as refusals.

Fix: open them, or turn the firewall off where another one guards the hosts.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
KUBEADM = ("Firewalld",)
UNITS = {"firewalld.service": "firewalld", "ufw.service": "ufw", "nftables.service": "nftables"}


def find(node: Node) -> Iterator[Finding]:
    for entry in node.capture.matching(r"/etc/systemd/system/[^/]+\.wants/[^/]+\.service"):
        name = UNITS.get(entry.path.rpartition("/")[2])
        if name == "ufw" and not node.find("/etc/ufw/ufw.conf", r"^ENABLED=yes"):
            continue
        if name:
            yield Finding(f"{name} is enabled: 6443, 2379, 2380 and 10250 must be open", (Evidence(entry.path),))
