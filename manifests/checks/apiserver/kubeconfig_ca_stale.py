"""A kubeconfig trusts a CA that is no longer the cluster's.

After a rotation of the CA `kubeadm certs renew` leaves certificate-authority-data as it was: the client then refuses
the API server with "certificate signed by unknown authority". A bundle that contains today's CA is fine.

Fix: write the kubeconfigs anew: `kubeadm init phase kubeconfig all`; people's copies from the new admin.conf.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Fix, Layer, Severity
from manifests.node import HOME_CONFIG, Node
from manifests.pki.credentials import CLUSTER_CA
from manifests.pki.trust import authorities, outdated

SEVERITY = Severity.ERROR
FILES = {
    "/etc/kubernetes/kubelet.conf": (Severity.CRITICAL, Layer.KUBELET),
    "/etc/kubernetes/controller-manager.conf": (Severity.ERROR, Layer.CONTROLLERS),
    "/etc/kubernetes/scheduler.conf": (Severity.ERROR, Layer.CONTROLLERS),
    "/etc/kubernetes/admin.conf": (Severity.ERROR, Layer.APISERVER),
    "/etc/kubernetes/super-admin.conf": (Severity.ERROR, Layer.APISERVER),
    HOME_CONFIG: (Severity.WARNING, Layer.APISERVER),
}


def find(node: Node) -> Iterator[Finding]:
    ours = authorities(node, CLUSTER_CA)[0]
    for path, (severity, layer) in FILES.items():
        config = node.home_kubeconfig if path == HOME_CONFIG else node.kubeconfigs.get(path)
        if config is not None and config.ca is not None and config.ca.certificates and outdated(node, config):
            theirs = config.ca.certificates[0]
            yield Finding(
                f"{path} trusts another CA than {CLUSTER_CA}",
                (
                    theirs.says(f"trusts CN={theirs.common_name}, {theirs.fingerprint[:16]}"),
                    ours.says(f"CN={ours.common_name}, {ours.fingerprint[:16]}"),
                ),
                severity=severity,
                layer=layer,
                fix=Fix("drtool fix kubeconfig-ca-stale", "writes today's CA, and a client certificate of it, into it"),
            )
