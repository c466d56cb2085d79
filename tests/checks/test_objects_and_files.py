"""Checks that weigh cluster objects against the node's files: the fault and its healthy look-alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drtool.checks import Case
from drtool.checks.cni import bandwidth_without_plugin, hostport_without_portmap
from drtool.checks.objects import cri_socket_annotation, front_proxy_configmap_stale, kubeadm_extraargs_removed_flag
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding
from tests.builders.tree import Tree, laid
from tests.registry import stored

CHAIN = "/etc/cni/net.d/10-net.conflist"
BRIDGE = {"type": "bridge", "ipam": {"type": "host-local"}}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
BANDWIDTH = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
Find = Callable[[Case], Iterator[Finding]]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def titles(find: Find, tree: Tree, text: str) -> list[str]:
    return [finding.title for finding in find(Case(tree.node(), objects=stored.cluster(text)))]


def chain(tree: Tree, *plugins: object) -> None:
    tree.write(CHAIN, json.dumps({"cniVersion": "1.0.0", "name": "net", "plugins": list(plugins)}))


POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, annotations: %s}
spec: {nodeName: %s, hostNetwork: %s, containers: [{name: web, ports: [{containerPort: 80, hostPort: %s}]}]}
"""


@pytest.mark.parametrize(
    ("plugins", "host_network", "port", "elsewhere", "fires"),
    [
        ((BRIDGE,), "false", 8080, False, True),
        ((BRIDGE, {"type": "portmap"}), "false", 8080, False, True),
        ((BRIDGE, PORTMAP), "false", 8080, False, False),
        ((BRIDGE,), "true", 8080, False, False),
        ((BRIDGE,), "false", 0, False, False),
        ((BRIDGE,), "false", 8080, True, False),
    ],
)
def test_a_host_port_needs_a_plugin_that_maps_it(
    tree: Tree, plugins: tuple[object, ...], host_network: str, port: int, elsewhere: bool, fires: bool
) -> None:
    chain(tree, *plugins)
    node = "other" if elsewhere else tree.node().name
    assert bool(titles(hostport_without_portmap.find, tree, POD % ("{}", node, host_network, port))) is fires


def test_a_static_pod_s_host_port_counts_without_a_db(tree: Tree) -> None:
    chain(tree, BRIDGE)
    spec = "{containers: [{name: w, image: i, ports: [{containerPort: 9000, hostPort: 9000}]}]}"
    manifest = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {spec}\n"
    tree.write("/etc/kubernetes/manifests/web.yaml", manifest)
    found = list(hostport_without_portmap.find(Case(tree.node())))
    assert [each.title for each in found] == ["Static Pod web asks for hostPort 9000, which nothing maps"]


def test_cilium_maps_ports_and_limits_bandwidth_by_itself(tree: Tree) -> None:
    chain(tree, {"type": "cilium-cni"})
    for find in (hostport_without_portmap.find, bandwidth_without_plugin.find):
        with pytest.raises(NotApplicable):
            titles(find, tree, "")


@pytest.mark.parametrize(
    ("plugins", "annotations", "fires"),
    [
        ((BRIDGE, PORTMAP), '{kubernetes.io/egress-bandwidth: "10M"}', True),
        ((BRIDGE, BANDWIDTH), '{kubernetes.io/egress-bandwidth: "10M"}', False),
        ((BRIDGE,), "{}", False),
    ],
)
def test_bandwidth_needs_its_plugin(tree: Tree, plugins: tuple[object, ...], annotations: str, fires: bool) -> None:
    chain(tree, *plugins)
    text = POD % (annotations, tree.node().name, "false", 0)
    assert bool(titles(bandwidth_without_plugin.find, tree, text)) is fires


KUBEADM = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kubeadm-config, namespace: kube-system}
data:
  ClusterConfiguration: |
    kubernetesVersion: v1.34.4
    apiServer: {extraArgs: %s}
"""


@pytest.mark.parametrize(
    ("given", "fires"),
    [
        ("{insecure-port: '0'}", True),
        ("[{name: insecure-port, value: '0'}]", True),
        ("{audit-log-path: /var/log/audit.log}", False),
        ("[{name: audit-log-path, value: /var/log/audit.log}]", False),
        ("null", False),
    ],
)
def test_extra_args_name_no_removed_flag(tree: Tree, given: str, fires: bool) -> None:
    assert bool(titles(kubeadm_extraargs_removed_flag.find, tree, KUBEADM % given)) is fires


AUTHENTICATION = """
apiVersion: v1
kind: ConfigMap
metadata: {name: extension-apiserver-authentication, namespace: kube-system}
data: {requestheader-client-ca-file: %s}
"""


def test_the_published_front_proxy_ca_is_the_one_in_use(tree: Tree) -> None:
    own = tree.read("/etc/kubernetes/pki/front-proxy-ca.crt")
    other = tree.read("/etc/kubernetes/pki/ca.crt")
    find = front_proxy_configmap_stale.find
    assert titles(find, tree, AUTHENTICATION % json.dumps(own)) == []
    assert titles(find, tree, AUTHENTICATION % json.dumps(other + own)) == []
    assert len(titles(find, tree, AUTHENTICATION % json.dumps(other))) == 1
    with pytest.raises(EvidenceMissing):
        titles(find, tree, AUTHENTICATION % '""')


NODE = """
apiVersion: v1
kind: Node
metadata: {name: %s, annotations: {kubeadm.alpha.kubernetes.io/cri-socket: "%s"}}
"""


@pytest.mark.parametrize(
    ("noted", "fires"),
    [
        ("unix:///var/run/containerd/containerd.sock", False),
        ("unix:///run/containerd/containerd.sock", False),
        ("/run/containerd/containerd.sock", False),
        ("unix:///var/run/crio/crio.sock", True),
    ],
)
def test_the_noted_socket_is_the_one_in_use(tree: Tree, noted: str, fires: bool) -> None:
    name = tree.node().kubelet.node_name
    assert bool(titles(cri_socket_annotation.find, tree, NODE % (name, noted))) is fires
    with pytest.raises(NotApplicable):
        titles(cri_socket_annotation.find, tree, NODE.replace("kubeadm.alpha", "other") % (name, noted))
