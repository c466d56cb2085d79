"""The Nodes' ranges of Pod addresses: the healthy look-alike and the fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding
from snapshots.checks.cni import podcidr_duplicate, podcidr_missing, podcidr_outside, pods_exceed_podcidr
from tests.registry import stored

NODE = """
---
apiVersion: v1
kind: Node
metadata: {name: %s}
spec: %s
status: {capacity: {pods: "110"}}
"""
CONTROLLER_MANAGER = """
---
apiVersion: v1
kind: Pod
metadata: {name: kube-controller-manager-cp, namespace: kube-system, labels: {component: kube-controller-manager}}
spec:
  containers:
  - name: kube-controller-manager
    command: [kube-controller-manager, --allocate-node-cidrs=true, "--cluster-cidr=10.244.0.0/16,fd00::/48"]
"""
CALICO = """
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ippools.crd.projectcalico.org}
"""


def node(name: str, *networks: str) -> str:
    spec = f"{{podCIDR: '{networks[0]}', podCIDRs: {list(networks)}}}" if networks else "{}"
    return NODE % (name, spec)


def titles(find: Callable[..., object], text: str) -> list[str]:
    found = find(stored.cluster(text))
    return [finding.title for finding in found if isinstance(finding, Finding)]  # type: ignore[attr-defined]


def test_a_node_without_a_range() -> None:
    text = CONTROLLER_MANAGER + node("a", "10.244.0.0/24") + node("b")
    assert titles(podcidr_missing.find, text) == ["Node b has no podCIDR"]
    assert titles(podcidr_missing.find, CONTROLLER_MANAGER + node("a", "10.244.0.0/24")) == []
    assert titles(podcidr_missing.find, CONTROLLER_MANAGER + node("a")) == ["Node a has no podCIDR"]
    with pytest.raises(NotApplicable, match="nothing gives"):
        titles(podcidr_missing.find, node("a"))


LEASE = """
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: b, namespace: kube-node-lease}
spec: {renewTime: "2026-11-30T09:42:%02d.000000Z"}
"""


def test_a_node_that_has_just_joined_waits_for_its_range() -> None:
    made = node("b").replace("{name: b}", '{name: b, creationTimestamp: "2026-11-30T09:41:40Z"}')
    assert titles(podcidr_missing.find, CONTROLLER_MANAGER + made + LEASE % 9) == []
    assert titles(podcidr_missing.find, CONTROLLER_MANAGER + made + LEASE % 50) == ["Node b has no podCIDR"]


def test_two_nodes_with_the_same_range() -> None:
    text = node("a", "10.244.0.0/24", "fd00::/64") + node("b", "10.244.1.0/24", "fd00:0:0:1::/64")
    assert titles(podcidr_duplicate.find, text) == []
    shared = node("a", "10.244.0.0/24") + node("b", "10.244.0.128/25")
    assert titles(podcidr_duplicate.find, shared) == [
        "Nodes a (10.244.0.0/24) and b (10.244.0.128/25) have the same Pod addresses"
    ]


def test_a_node_outside_the_cluster_s_range() -> None:
    assert titles(podcidr_outside.find, CONTROLLER_MANAGER + node("a", "10.244.0.0/24", "fd00::/64")) == []
    assert len(titles(podcidr_outside.find, CONTROLLER_MANAGER + node("a", "10.245.0.0/24"))) == 1
    kubeadm = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kubeadm-config, namespace: kube-system}
data: {ClusterConfiguration: "networking: {podSubnet: 10.0.0.0/16}"}
"""
    assert len(titles(podcidr_outside.find, kubeadm + node("a", "10.245.0.0/24"))) == 1
    with pytest.raises(EvidenceMissing):
        titles(podcidr_outside.find, node("a", "10.245.0.0/24"))


def test_more_pods_than_addresses() -> None:
    assert titles(pods_exceed_podcidr.find, node("a", "10.244.0.0/24")) == []
    assert titles(pods_exceed_podcidr.find, node("a", "10.244.0.0/25")) == []
    assert titles(pods_exceed_podcidr.find, node("a", "10.244.0.0/26")) == [
        "Node a allows 110 Pods and 10.244.0.0/26 has addresses for 61"
    ]


@pytest.mark.parametrize("check", [podcidr_missing, podcidr_duplicate, podcidr_outside, pods_exceed_podcidr])
def test_plugins_with_addresses_of_their_own_do_not_count(check: object) -> None:
    with pytest.raises(NotApplicable, match="gives out addresses by itself"):
        titles(check.find, CALICO + node("a") + node("b"))  # type: ignore[attr-defined]
    with pytest.raises(EvidenceMissing, match="no Node"):
        titles(check.find, "")  # type: ignore[attr-defined]
