"""kubeadm's controlPlaneEndpoint must be the one in use.

kubeadm writes it into every kubeconfig and certificate that it makes: a stale one comes back with the next join,
renewal or upgrade. It is held to be stale where cluster-info and kube-proxy agree on another address, and no API server
has the one that it names. Names may resolve to the same address, so they are not compared.

Fix: `drtool move-endpoint` corrects it along with all other places; by hand: edit the ConfigMap kubeadm-config.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Finding, Severity
from snapshots.registry.cluster import Cluster
from snapshots.registry.endpoints import advertised, cluster_info, control_plane_endpoint, kube_proxy

SEVERITY = Severity.ERROR


def find(cluster: Cluster) -> Iterator[Finding]:
    endpoint = control_plane_endpoint(cluster)
    if endpoint is None:
        raise NotApplicable("kubeadm-config has no controlPlaneEndpoint")
    info, proxy = cluster_info(cluster), kube_proxy(cluster)
    comparable = endpoint.is_address and info.is_address
    if comparable and info.host == proxy.host != endpoint.host and endpoint.host not in advertised(cluster):
        yield Finding(
            f"kubeadm-config's controlPlaneEndpoint is {endpoint.host}, cluster-info and kube-proxy name {info.host}",
            (endpoint.source, info.source, proxy.source),
        )
