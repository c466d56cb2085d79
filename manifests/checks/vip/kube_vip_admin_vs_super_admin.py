"""On the first init of Kubernetes 1.29 or newer kube-vip was given admin.conf, which may do nothing yet.

Since 1.29 admin.conf gets its rights from a ClusterRoleBinding that kubeadm makes through the API, by the endpoint, by
the address that kube-vip does not bring up because it may not take its lease. super-admin.conf works from the start.
After the bootstrap admin.conf is right, and joined nodes have no super-admin.conf.

Fix: for `kubeadm init` mount super-admin.conf in kube-vip.yaml, and change it back to admin.conf afterwards.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.kube_vip import lock_errors, the_kube_vip
from manifests.node import Node

SEVERITY = Severity.CRITICAL
ADMIN, SUPER_ADMIN = "/etc/kubernetes/admin.conf", "/etc/kubernetes/super-admin.conf"


def find(node: Node) -> Iterator[Finding]:
    vip = the_kube_vip(node)
    if node.kubernetes is None:
        raise EvidenceMissing("the version of Kubernetes is not known")
    if node.kubernetes < (1, 29, 0):
        raise NotApplicable("before 1.29 admin.conf is in system:masters")
    mounted = vip.kubeconfig
    if mounted is None or mounted[0] != ADMIN or node.entry(SUPER_ADMIN).kind == "absent":
        return
    forbidden = lock_errors(node, "is forbidden")
    if forbidden or _first_init(node):
        yield Finding(
            "kube-vip uses admin.conf, which has no rights before the first init is done",
            (mounted[1], Evidence(SUPER_ADMIN), *forbidden[-1:]),
        )


def _first_init(node: Node) -> bool:
    """kubeadm's last phase makes kubelet.conf name the rotated file; until then it holds the certificate itself."""
    config = node.kubeconfigs.get("/etc/kubernetes/kubelet.conf")
    rotated = node.capture.matching(r"/var/lib/kubelet/pki/kubelet-client-.*\.pem")
    return config is not None and not config.client_file and not any(rotated)
