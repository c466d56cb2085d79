"""cluster-info must name an API server that is there.

The ConfigMap kube-public/cluster-info is what `kubeadm join` reads first. After a change of address or endpoint it
still names the old one, and no node can join. A DNS name may resolve to the right address: it is not held against it.

Fix: `drtool readdress` and `drtool move-endpoint` correct it along with all other places; by hand: edit its kubeconfig.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from snapshots.registry.cluster import Cluster
from snapshots.registry.endpoints import cluster_info, contradiction

SEVERITY = Severity.ERROR


def find(cluster: Cluster) -> Iterator[Finding]:
    named = cluster_info(cluster)
    against = contradiction(cluster, named)
    if against:
        yield Finding(f"cluster-info names {named.host}, where no API server is", (named.source, *against))
