"""The kubelet's service must be enabled, or the node does not come back after a reboot.

Fix: `systemctl enable kubelet.service`.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.WARNING
KUBEADM = ("Service-kubelet",)


def find(node: Node) -> Iterator[Finding]:
    enabled = [e.path for e in node.capture.matching(r"/etc/systemd/system/[^/]+\.wants/[^/]+\.service")]
    if not enabled:
        raise EvidenceMissing("no systemd units in this tree: what starts at boot is not known")
    if not any(path.endswith("/kubelet.service") for path in enabled):
        yield Finding(
            "kubelet.service is not enabled", (Evidence("/etc/systemd/system", None, "kubelet.service in no .wants"),)
        )
