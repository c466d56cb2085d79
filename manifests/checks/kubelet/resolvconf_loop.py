"""The kubelet's resolv.conf must not name a resolver on the loopback address.

127.0.0.53 is systemd-resolved on the host; inside a Pod it is the Pod itself, so CoreDNS forwards to itself and stops
with `Loop detected`. The control plane is not hit, names inside the cluster are.

Fix: resolvConf: /run/systemd/resolve/resolv.conf, restart the kubelet, restart CoreDNS.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.installed import kubelet_configuration
from manifests.network.addresses import address_of
from manifests.node import Node

SEVERITY = Severity.ERROR


def find(node: Node) -> Iterator[Finding]:
    path, evidence = node.kubelet.setting("resolv-conf", "resolvConf", default="/etc/resolv.conf")
    if not node.kubelet.flag("resolv-conf"):
        kubelet_configuration(node)
    if not path:
        return
    if node.entry(str(path)).data is None:
        raise EvidenceMissing(f"{path} is not in this tree")
    for match, at in node.find(str(path), r"^\s*nameserver\s+(\S+)"):
        address = address_of(match[1])
        if address is not None and address.is_loopback:
            yield Finding(f"Pods get the resolver {address} from {path}, which is themselves", (at, evidence))
            return
