"""Each check over objects: the healthy look-alike and the fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding
from snapshots.checks.objects import (
    cluster_info_stale,
    clusterstatus_stale,
    component_image_outdated,
    ipam_after_restore,
    kube_proxy_cm_stale,
    kubeadm_config_cpe_stale,
    node_network_unavailable,
    rbac_cluster_admin_missing,
    selector_matches_nothing,
    skew_unsupported,
    webhook_deadlock,
)
from tests.registry import stored

KUBEADM = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kubeadm-config, namespace: kube-system}
data:
  ClusterConfiguration: |
    kubernetesVersion: %s
    controlPlaneEndpoint: "%s"
"""
POINTERS = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-info, namespace: kube-public}
data: {kubeconfig: "clusters: [{cluster: {server: 'https://%s:6443'}}]"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data: {kubeconfig.conf: "clusters: [{cluster: {server: 'https://%s:6443'}}]"}
"""
KUBERNETES = """
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
endpoints: [{addresses: [192.0.2.11]}]
"""
NODE = """
---
apiVersion: v1
kind: Node
metadata: {name: %s, creationTimestamp: "2026-11-30T04:00:00Z", labels: {node-role.kubernetes.io/control-plane: ""}}
spec: %s
status: {addresses: [{type: InternalIP, address: 192.0.2.11}], nodeInfo: {kubeletVersion: %s}, conditions: %s}
"""
LEASE = """
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: n, namespace: kube-node-lease}
spec: {renewTime: "%s"}
"""


def titles(find: Callable[..., object], text: str) -> list[str]:
    found = find(stored.cluster(text))
    return [finding.title for finding in found if isinstance(finding, Finding)]  # type: ignore[attr-defined]


def node(name: str = "cp-1", spec: str = "{}", kubelet: str = "v1.37.2", conditions: str = "[]") -> str:
    return NODE % (name, spec, kubelet, conditions)


# -- endpoints


@pytest.mark.parametrize(
    ("endpoint", "info", "stale"),
    [
        ("", "192.0.2.11", False),
        ("", "192.0.2.99", True),
        ("192.0.2.100:6443", "192.0.2.100", False),
        ("192.0.2.100:6443", "192.0.2.99", True),
        ("192.0.2.100:6443", "192.0.2.11", False),
        ("cp.example.org:6443", "192.0.2.100", False),
        ("192.0.2.100:6443", "cp.example.org", False),
    ],
)
def test_cluster_info_and_kube_proxy_must_name_an_api_server(endpoint: str, info: str, stale: bool) -> None:
    text = KUBEADM % ("v1.37.2", endpoint) + POINTERS % (info, info) + KUBERNETES
    assert bool(titles(cluster_info_stale.find, text)) is stale
    assert bool(titles(kube_proxy_cm_stale.find, text)) is stale


def test_without_an_address_to_compare_nothing_is_concluded() -> None:
    text = KUBEADM % ("v1.37.2", "") + POINTERS % ("192.0.2.99", "192.0.2.99")
    with pytest.raises(EvidenceMissing, match="no object tells"):
        titles(cluster_info_stale.find, text)
    with pytest.raises(EvidenceMissing, match="kubeadm-config"):
        titles(cluster_info_stale.find, POINTERS % ("192.0.2.99", "192.0.2.99") + KUBERNETES)


@pytest.mark.parametrize(
    ("endpoint", "info", "proxy", "stale"),
    [
        ("192.0.2.100:6443", "192.0.2.100", "192.0.2.100", False),
        ("192.0.2.99:6443", "192.0.2.100", "192.0.2.100", True),
        ("192.0.2.99:6443", "192.0.2.100", "192.0.2.99", False),
        ("192.0.2.11:6443", "192.0.2.100", "192.0.2.100", False),
        ("old.example.org:6443", "new.example.org", "new.example.org", False),
    ],
)
def test_kubeadm_s_endpoint_must_be_the_one_in_use(endpoint: str, info: str, proxy: str, stale: bool) -> None:
    text = KUBEADM % ("v1.37.2", endpoint) + POINTERS % (info, proxy) + KUBERNETES
    assert bool(titles(kubeadm_config_cpe_stale.find, text)) is stale


def test_a_cluster_without_an_endpoint_has_no_stale_one() -> None:
    with pytest.raises(NotApplicable):
        titles(kubeadm_config_cpe_stale.find, KUBEADM % ("v1.37.2", ""))


def test_cluster_status_lists_only_nodes() -> None:
    status = "  ClusterStatus: |\n    apiEndpoints: {cp-1: {advertiseAddress: 192.0.2.11}, gone: {}}\n"
    old = KUBEADM % ("v1.21.5", "") + status + node()
    assert titles(clusterstatus_stale.find, old) == ["kubeadm's ClusterStatus lists gone, which is no Node"]
    assert titles(clusterstatus_stale.find, old.replace(", gone: {}", "")) == []
    with pytest.raises(NotApplicable, match=r"1\.22"):
        titles(clusterstatus_stale.find, old.replace("v1.21.5", "v1.22.0"))
    with pytest.raises(NotApplicable, match="no ClusterStatus"):
        titles(clusterstatus_stale.find, KUBEADM % ("v1.21.5", ""))


# -- versions


POD = """
---
apiVersion: v1
kind: Pod
metadata: {name: %s-%s, namespace: kube-system, labels: {component: %s, tier: control-plane}}
spec: {containers: [{name: %s, image: "registry.k8s.io/%s:%s"}]}
"""


def program(name: str, version: str, on: str = "cp-1") -> str:
    return POD % (name, on, name, name, name, version)


@pytest.mark.parametrize(
    ("kubelet", "wrong"),
    [("v1.37.2", 0), ("v1.36.9", 0), ("v1.34.0", 0), ("v1.33.9", 1), ("v1.38.0", 1), ("", 0)],
)
def test_a_kubelet_is_at_most_three_minors_older_and_never_newer(kubelet: str, wrong: int) -> None:
    text = program("kube-apiserver", "v1.37.2") + node(kubelet=kubelet or '""')
    assert len(titles(skew_unsupported.find, text)) == wrong


def test_an_upgrade_under_way_is_within_the_policy() -> None:
    text = program("kube-apiserver", "v1.37.0") + program("kube-apiserver", "v1.36.4", "cp-2") + node(kubelet="v1.36.4")
    assert titles(skew_unsupported.find, text + program("kube-scheduler", "v1.36.4")) == []
    assert len(titles(skew_unsupported.find, text.replace("v1.37.0", "v1.38.0"))) == 1
    assert len(titles(skew_unsupported.find, text + program("kube-scheduler", "v1.37.0"))) == 1


def test_without_pods_kubeadm_s_version_counts() -> None:
    assert titles(skew_unsupported.find, KUBEADM % ("v1.30.1", "") + node(kubelet="v1.31.0")) != []
    with pytest.raises(EvidenceMissing):
        titles(skew_unsupported.find, node())


# -- RBAC


BINDING = """
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "kubeadm:cluster-admins"}
subjects: [{kind: Group, name: "kubeadm:cluster-admins"}]
roleRef: {kind: ClusterRole, name: cluster-admin}
"""
ROLE = """
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cluster-admin}
"""


def test_admin_conf_needs_its_binding_from_1_29_on() -> None:
    whole = KUBEADM % ("v1.37.2", "") + BINDING + ROLE
    assert titles(rbac_cluster_admin_missing.find, whole) == []
    assert len(titles(rbac_cluster_admin_missing.find, whole.replace(BINDING, ""))) == 1
    assert len(titles(rbac_cluster_admin_missing.find, whole.replace("kind: Group", "kind: User"))) == 1
    assert len(titles(rbac_cluster_admin_missing.find, whole.replace(ROLE, ""))) == 1
    with pytest.raises(NotApplicable):
        titles(rbac_cluster_admin_missing.find, KUBEADM % ("v1.28.5", ""))


# -- selectors


WORKLOAD = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: shop}
spec: {replicas: 0, template: {metadata: {labels: {app: front}}}}
"""
SERVICE = """
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec: {type: %s, selector: %s}
"""


@pytest.mark.parametrize(
    ("kind", "selector", "found"),
    [
        ("ClusterIP", "{app: front}", []),
        ("ClusterIP", "{}", []),
        ("ExternalName", "{app: fornt}", []),
        (
            "ClusterIP",
            "{app: fornt}",
            ["Service shop/front selects app=fornt, which no Pod or template has; the nearest is app=front"],
        ),
        (
            "ClusterIP",
            "{apps: front}",
            ["Service shop/front selects apps=front, which no Pod or template has; the nearest label is app"],
        ),
    ],
)
def test_a_service_must_select_something(kind: str, selector: str, found: list[str]) -> None:
    assert titles(selector_matches_nothing.find, WORKLOAD + SERVICE % (kind, selector)) == found


def test_policies_and_budgets_must_select_something() -> None:
    text = """
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: all, namespace: shop}
spec: {podSelector: {}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: typo, namespace: shop}
spec: {podSelector: {matchLabels: {app: nothing-like-it}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: typo, namespace: shop}
spec: {selector: {matchExpressions: [{key: app, operator: In, values: [back]}]}}
"""
    assert len(titles(selector_matches_nothing.find, WORKLOAD + text)) == 2


# -- webhooks


WEBHOOK = """
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
- name: guard.example.org
  failurePolicy: %s
  clientConfig: {service: {namespace: guard, name: guard}}
  namespaceSelector: %s
  rules: [{apiGroups: ["%s"], apiVersions: ["*"], operations: [CREATE], resources: [%s]}]
"""
BACKEND = """
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: guard-1, namespace: guard, labels: {kubernetes.io/service-name: guard}}
endpoints: [{addresses: [10.0.0.9], conditions: {ready: %s}}]
"""
EXCLUDED = "{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [guard]}]}"


@pytest.mark.parametrize(
    ("policy", "spaces", "group", "resource", "ready", "fires"),
    [
        ("Fail", "{}", "", "pods", "false", True),
        ("Fail", "{}", "*", '"*"', "false", True),
        ("Fail", "{}", "", "pods", "true", False),
        ("Ignore", "{}", "", "pods", "false", False),
        ("Fail", EXCLUDED, "", "pods", "false", False),
        ("Fail", "{}", "apps", "deployments", "false", False),
    ],
)
def test_a_webhook_that_locks_itself_out(
    policy: str, spaces: str, group: str, resource: str, ready: str, fires: bool
) -> None:
    text = WEBHOOK % (policy, spaces, group, resource) + BACKEND % ready
    assert bool(titles(webhook_deadlock.find, text)) is fires


def test_a_webhook_without_any_service_is_as_dead() -> None:
    assert titles(webhook_deadlock.find, WEBHOOK % ("Fail", "{}", "", "pods")) != []


# -- nodes


UNREADY = '[{type: Ready, status: "False", message: "container runtime network not ready: cni plugin not initialized"}]'


@pytest.mark.parametrize(
    ("spec", "conditions", "renewed", "fires"),
    [
        ("{}", "[]", "2026-11-30T08:00:00.000000Z", False),
        ("{}", UNREADY, "2026-11-30T08:00:00.000000Z", True),
        ("{}", UNREADY, "2026-11-30T04:01:00.000000Z", False),
        (
            "{taints: [{key: node.kubernetes.io/network-unavailable, effect: NoSchedule}]}",
            "[]",
            "2026-11-30T08:00:00Z",
            True,
        ),
        ("{}", '[{type: Ready, status: "False", message: "kubelet is shutting down"}]', "2026-11-30T08:00:00Z", False),
    ],
)
def test_a_node_without_network(spec: str, conditions: str, renewed: str, fires: bool) -> None:
    text = node(spec=spec, conditions=conditions) + LEASE % renewed
    assert bool(titles(node_network_unavailable.find, text)) is fires


def test_without_a_time_an_unready_node_is_not_judged() -> None:
    with pytest.raises(EvidenceMissing, match="no lease"):
        titles(node_network_unavailable.find, node(conditions=UNREADY))


BLOCKS = """
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ipamblocks.crd.projectcalico.org}
spec:
  {group: crd.projectcalico.org, scope: Cluster, names: {plural: ipamblocks, kind: IPAMBlock},
   versions: [{name: v1, storage: true}]}
---
apiVersion: crd.projectcalico.org/v1
kind: IPAMBlock
metadata: {name: 10-0-0-0-30}
spec: {cidr: 10.0.0.0/30, allocations: [null, 0, null, null]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
status: {phase: Running, podIPs: [{ip: %s}]}
"""


def test_calico_s_record_must_cover_the_pods() -> None:
    assert titles(ipam_after_restore.find, BLOCKS % "10.0.0.1") == []
    assert titles(ipam_after_restore.find, BLOCKS % "10.0.0.2") == ["Pod shop/p has 10.0.0.2, which counts as free"]
    assert titles(ipam_after_restore.find, BLOCKS % "198.51.100.9") == []
    with pytest.raises(NotApplicable):
        titles(ipam_after_restore.find, node())


def test_a_newer_patch_that_lies_on_a_node_is_told() -> None:
    running = program("kube-apiserver", "v1.37.0") + program("kube-apiserver", "v1.36.9", "cp-2")
    assert titles(component_image_outdated.find, running) == []
    ahead = running + program("kube-apiserver", "v1.37.2", "cp-3")
    found = titles(component_image_outdated.find, ahead)
    assert found == ["kube-apiserver-cp-1 runs v1.37.0, and v1.37.2 is in this cluster"]
    images = node().replace("nodeInfo:", "images: [{names: ['registry.k8s.io/kube-apiserver:v1.37.1']}], nodeInfo:")
    assert len(titles(component_image_outdated.find, running + images)) == 1
    with pytest.raises(EvidenceMissing):
        titles(component_image_outdated.find, node())
