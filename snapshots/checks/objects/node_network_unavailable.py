"""A Node whose network is not there takes no Pods.

The taint node.kubernetes.io/network-unavailable, the condition NetworkUnavailable, or Ready being false for a network
reason (`cni plugin not initialized`): no plugin has set up the Node, or its configuration is gone. A Node that joined a
minute ago is still being set up. "Now" is the newest time that a lease in the db was renewed.

Fix: look at the network plugin's Pod on that Node, and at /etc/cni/net.d there.
"""

from collections.abc import Iterator
from datetime import timedelta

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from snapshots.registry.cluster import Cluster, evidence
from snapshots.registry.objects import Object
from snapshots.registry.tables.cells import dicts, moment

SEVERITY = Severity.ERROR
TAINT = "node.kubernetes.io/network-unavailable"
YOUNG = timedelta(minutes=5)
REASONS = (
    "NetworkPluginNotReady",
    "cni plugin not initialized",
    "network plugin is not ready",
    "cni config uninitialized",
)


def find(cluster: Cluster) -> Iterator[Finding]:
    suspects = [(node, sign) for node in cluster.nodes() if (sign := _sign(node)) is not None]
    if not suspects:
        return
    now = cluster.now()
    for node, sign in suspects:
        made = moment(node.metadata.get("creationTimestamp"))
        if made is None:
            raise EvidenceMissing(f"Node {node.name} does not tell when it joined")
        if now - made > YOUNG:
            yield Finding(f"Node {node.name} has no network", (sign,))


def _sign(node: Object) -> Evidence | None:
    key = evidence(node).path
    for taint in dicts(node.at("spec", "taints")):
        if taint.get("key") == TAINT:
            return Evidence(key, text=f"taint {TAINT}:{taint.get('effect')}")
    for condition in dicts(node.at("status", "conditions")):
        kind, status, message = (str(condition.get(name, "")) for name in ("type", "status", "message"))
        if kind == "NetworkUnavailable" and status == "True":
            return Evidence(key, text=f"NetworkUnavailable: {condition.get('reason')}: {message}")
        if kind == "Ready" and status == "False" and any(reason in message for reason in REASONS):
            return Evidence(key, text=f"Ready is False: {message}")
    return None
