"""The kernel must forward packets, and pass bridged ones to the filter where the network plugin counts on that.

With ip_forward off Pods reach nothing outside their node and joining stops at preflight; a hardening file that sorts
late in /etc/sysctl.d often turns it off again. As long as no Pod with a network of its own runs here, nothing is
forwarded yet, and it is a warning. net.bridge.bridge-nf-call-iptables is the wish of bridge plugins with iptables
(flannel, bridge); eBPF plugins and kube-proxy's nftables mode do without, so there it is only a warning.

Fix: net.ipv4.ip_forward = 1 in the last file of /etc/sysctl.d, `sysctl --system`; br_netfilter in /etc/modules-load.d.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.host.mounts import mounted
from manifests.network.addresses import address_of
from manifests.node import KUBEADM_CONFIGS, Node

SEVERITY = Severity.ERROR
FORWARD = {4: "net.ipv4.ip_forward", 6: "net.ipv6.conf.all.forwarding"}
BRIDGE = {4: "net.bridge.bridge-nf-call-iptables", 6: "net.bridge.bridge-nf-call-ip6tables"}
BRIDGED = re.compile(rb'"type"\s*:\s*"(bridge|flannel)"')
SYSCTL_FILES = r"/(etc|run|usr/lib)/sysctl\.d/[^/]+\.conf|/etc/sysctl\.conf"


def find(node: Node) -> Iterator[Finding]:
    families = _families(node)
    yield from _bridge(node, families)
    gap: EvidenceMissing | None = None
    for family in families:
        try:
            value, evidence = node.sysctl(FORWARD[family])
        except EvidenceMissing as missing:
            gap = gap or missing
            continue
        if value == "0":
            title = f"{FORWARD[family]} is 0: Pods reach nothing outside this node"
            severity = Severity.WARNING if _no_pod_network_in_use(node) else None
            yield Finding(title, (evidence, *_setting(node, FORWARD[family])), severity)
    if gap:
        raise gap


def _no_pod_network_in_use(node: Node) -> bool:
    """Known only where the host's mounts are: each Pod with a network of its own holds /run/netns/cni-*."""
    try:
        return not any(mount.kind == "nsfs" and "/netns/cni-" in mount.path for mount in mounted(node))
    except EvidenceMissing:
        return False


def _families(node: Node) -> list[int]:
    """Families of the Service ranges; IPv4 where none is known."""
    apiserver = node.components.get("kube-apiserver")
    networks = apiserver.names("service-cluster-ip-range") if apiserver else ()
    found = {address.version for net in networks if (address := address_of(net.partition("/")[0])) is not None}
    return sorted(found) or [4]


def _bridge(node: Node, families: list[int]) -> Iterator[Finding]:
    bridged = any(
        BRIDGED.search(entry.data or b"") for entry in node.capture.below("/etc/cni/net.d") if entry.data is not None
    )
    for family in families:
        try:
            value, evidence = node.sysctl(BRIDGE[family])
        except EvidenceMissing:
            if bridged and node.find("/proc/modules", r"^\w") and not node.find("/proc/modules", r"^br_netfilter "):
                title = "The br_netfilter module is not loaded, and the network plugin bridges Pods"
                yield Finding(title, (Evidence("/proc/modules", None, "no br_netfilter"),), severity=Severity.WARNING)
                return
            continue
        if value == "0":
            yield Finding(
                f"{BRIDGE[family]} is 0: Services fail between Pods of one node where the plugin bridges them",
                (evidence, *_setting(node, BRIDGE[family])),
                severity=Severity.ERROR if bridged and not _nftables(node) else Severity.WARNING,
            )


def _nftables(node: Node) -> bool:
    """kube-proxy's mode, where the kubeadm configuration that is at hand sets it."""
    return any(node.find(path, r"^mode:\s*\"?nftables\b") for path in KUBEADM_CONFIGS)


def _setting(node: Node, name: str) -> tuple[Evidence, ...]:
    """The line that decides at boot: of files in the order of their names the last one that sets it."""
    pattern = rf"^\s*-?{re.escape(name).replace(chr(92) + '.', '[./]')}\s*=\s*0"
    paths = sorted((e.path for e in node.capture.matching(SYSCTL_FILES)), key=lambda path: path.rpartition("/")[2])
    found = [evidence for path in paths for _, evidence in node.find(path, pattern)]
    return tuple(found[-1:])
