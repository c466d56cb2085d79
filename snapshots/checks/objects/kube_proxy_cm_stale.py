"""kube-proxy must be told an API server that is there.

Its kubeconfig lies in the ConfigMap kube-system/kube-proxy. After a change of address or endpoint it still names the
old one: kube-proxy on every node loses the API, and Services keep the rules of before. A DNS name may resolve to the
right address: it is not held against it.

Fix: `drtool readdress` and `drtool move-endpoint` correct it along with all other places; by hand: edit the ConfigMap
and restart the DaemonSet kube-proxy.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from snapshots.registry.cluster import Cluster
from snapshots.registry.endpoints import contradiction, kube_proxy

SEVERITY = Severity.ERROR


def find(cluster: Cluster) -> Iterator[Finding]:
    named = kube_proxy(cluster)
    against = contradiction(cluster, named)
    if against:
        yield Finding(f"kube-proxy is told {named.host}, where no API server is", (named.source, *against))
