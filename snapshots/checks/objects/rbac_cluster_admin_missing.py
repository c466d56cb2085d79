"""The binding that makes admin.conf an administrator must exist.

From kubeadm 1.29, admin.conf belongs to the group kubeadm:cluster-admins, which is an administrator only by the
ClusterRoleBinding of that name. Where it is gone, admin.conf is forbidden everything, while super-admin.conf, whose
group system:masters needs no binding, still works. Before 1.29 admin.conf was in system:masters itself. The role
cluster-admin and its binding of that name come back when the API server starts.

Fix: with super-admin.conf: kubectl create clusterrolebinding kubeadm:cluster-admins --clusterrole=cluster-admin
--group=kubeadm:cluster-admins
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Severity
from snapshots.registry.cluster import Cluster, dotted, evidence, version
from snapshots.registry.tables.cells import dicts

SEVERITY = Severity.ERROR
BINDING = "kubeadm:cluster-admins"
FIRST = (1, 29)
RESTORE = Fix(
    f"kubectl --kubeconfig /etc/kubernetes/super-admin.conf create clusterrolebinding {BINDING} "
    f"--clusterrole=cluster-admin --group={BINDING}",
    "makes admin.conf an administrator again",
)


def find(cluster: Cluster) -> Iterator[Finding]:
    document, found = cluster.kubeadm()
    at = version(str(document.get("kubernetesVersion")))
    if at is None:
        raise EvidenceMissing("kubeadm-config does not tell the cluster's version")
    if at[:2] < FIRST:
        raise NotApplicable(f"{dotted(at)}: admin.conf is in system:masters")
    source = Evidence(evidence(found).path, text=f"kubernetesVersion: {document.get('kubernetesVersion')}")
    binding = cluster.get("ClusterRoleBinding", BINDING)
    if binding is None:
        yield Finding(f"ClusterRoleBinding {BINDING} is gone: admin.conf may do nothing", (source,), fix=RESTORE)
        return
    groups = {each.get("name") for each in dicts(binding.body.get("subjects")) if each.get("kind") == "Group"}
    if BINDING not in groups or binding.at("roleRef", "name") != "cluster-admin":
        yield Finding(
            f"ClusterRoleBinding {BINDING} does not make its group cluster-admin: admin.conf may do nothing",
            (evidence(binding, "subjects"), evidence(binding, "roleRef")),
        )
    if cluster.get("ClusterRole", "cluster-admin") is None:
        yield Finding("ClusterRole cluster-admin is gone: no binding to it grants anything", (evidence(binding),))
