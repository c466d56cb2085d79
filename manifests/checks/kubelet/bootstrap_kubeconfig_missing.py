"""bootstrap-kubelet.conf is absent: the normal state.

kubeadm deletes it after a node has joined. The kubelet asks for it only when its own client certificate cannot be used,
so "unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf" is a symptom: look at
kubelet-client-current.pem. An empty file of that name repairs nothing.

Fix: none; see cert-expired and kubelet-client-link.
"""

from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.INFO
PATH = "/etc/kubernetes/bootstrap-kubelet.conf"


def find(node: Node) -> Iterator[Finding]:
    said = [
        line for line in node.journal("kubelet") if "bootstrap-kubelet.conf" in line.text and "no such" in line.text
    ]
    if said and node.entry(PATH).kind == "absent":
        yield Finding(
            "The kubelet asks for bootstrap-kubelet.conf, which is rightly absent: its own certificate is the matter",
            (Evidence(PATH), said[-1].evidence),
        )
