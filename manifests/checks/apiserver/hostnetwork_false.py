"""Control-plane Pods must use the host's network.

etcd and the API server bind the node's own addresses, and no network plugin runs before they do. Without `hostNetwork:
true` the Pod waits for a network that only a running API server can bring.

Fix: set spec.hostNetwork to true in the manifest.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from manifests.installed import layer_of
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "cni-config-missing")


def find(node: Node) -> Iterator[Finding]:
    if not node.components:
        raise NotApplicable("no control-plane Pods here")
    for program, component in node.components.items():
        if component.pod.document.get("spec", "hostNetwork") is not True:
            where = component.pod.evidence("spec", "hostNetwork")
            yield Finding(f"{program} does not use the host's network", (where,), layer=layer_of(program))
