"""The kubelet must register under the name that its client certificate is made out to.

The API server lets `system:node:NAME` touch the node NAME alone. After a new hostname, or without the
--hostname-override of before, the kubelet is refused (`node "a" is not allowed to modify node "b"`) and the node goes
NotReady. `node "x" not found` in a log only means that the API server is out of reach. Upper case in a hostname is
lowered; names that a cloud provider gives are left alone, and short and full name of one host where /etc/hostname alone
tells which of them the kernel has.

Fix: restore the hostname or set --hostname-override in kubeadm-flags.env; else issue a new kubelet.conf.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.CRITICAL
PREFIX = "system:node:"


def find(node: Node) -> Iterator[Finding]:
    client = node.kubeconfig("kubelet.conf").client
    if client is None or not client.certificates:
        raise EvidenceMissing("the kubelet's client certificate is not in this tree")
    certificate = client.certificates[0]
    name = node.kubelet.node_name
    if not name:
        raise EvidenceMissing("the hostname is not in this tree")
    common = certificate.common_name
    if not common.startswith(PREFIX) or node.kubelet.flag("cloud-provider"):
        return
    certified = common.removeprefix(PREFIX)
    override = node.kubelet.flag("hostname-override")
    exact = override is not None or _kernel(node) == name
    if certified == name or (not exact and certified.partition(".")[0] == name.partition(".")[0]):
        return
    said = override.evidence if override else Evidence("/etc/hostname", 1, node.hostname)
    yield Finding(
        f"The kubelet registers as {name}, and its certificate is made out to {certified}",
        (said, Evidence(client.path, None, f"CN={common}")),
    )


def _kernel(node: Node) -> str:
    """The name that the kubelet asks for, "" where the tree does not tell."""
    return (node.entry("/proc/sys/kernel/hostname").data or b"").decode("utf-8", "replace").strip().lower()
