"""The Node: typed facts of a tree, and what is missing said as missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drtool.core.check import EvidenceMissing, NotApplicable
from manifests.layout import Layout
from tests.builders.tree import NOW, Tree, laid


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def test_who_it_is(tree: Tree) -> None:
    node = tree.node()
    assert (node.name, node.layout, node.hostname) == ("cp-1", Layout.STACKED, "cp-1")
    assert sorted(node.components) == ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    assert node.apiserver.version == node.kubernetes
    assert node.at == NOW


def test_a_component_that_is_renamed_is_known_by_its_command(tree: Tree) -> None:
    path = "/etc/kubernetes/manifests/kube-scheduler.yaml"
    tree.replace(path, "name: kube-scheduler", "name: my-scheduler")
    assert tree.node().scheduler.path == path


def test_a_component_that_is_gone_is_missing_evidence(tree: Tree) -> None:
    tree.remove("/etc/kubernetes/manifests/kube-scheduler.yaml")
    with pytest.raises(EvidenceMissing, match="no readable manifest of kube-scheduler"):
        _ = tree.node().scheduler


def test_a_flag_that_is_not_set_is_not_applicable(tree: Tree) -> None:
    with pytest.raises(NotApplicable, match="has no --audit-policy-file"):
        tree.node().apiserver.flag("audit-policy-file")


def test_files_that_are_absent_say_so(tree: Tree) -> None:
    node = tree.node()
    for ask in (node.data, node.text, node.document, node.pem, node.certificate):
        with pytest.raises(EvidenceMissing, match="No such file or directory"):
            ask("/etc/kubernetes/pki/absent.crt")
    assert node.find("/absent", "x") == ()


def test_kubeconfigs_have_the_files_they_name(tree: Tree) -> None:
    kubelet = tree.node().kubeconfig("kubelet.conf")
    assert kubelet.client_file == "/var/lib/kubelet/pki/kubelet-client-current.pem"
    assert kubelet.client is not None
    assert kubelet.client.certificates[0].common_name == "system:node:cp-1"
    with pytest.raises(EvidenceMissing):
        tree.node().kubeconfig("absent.conf")


def test_hosts_and_addresses(tree: Tree) -> None:
    tree.write("/etc/hosts", "127.0.0.1 localhost\n192.0.2.7 VIP vip.example.org # x\nnonsense\n\n")
    node = tree.node()
    assert [str(address) for address in node.resolve("vip")] == ["192.0.2.7"]
    assert node.resolve("VIP.example.org.") == node.resolve("vip")
    assert node.resolve("elsewhere.example.org") == ()
    assert [str(address) for address in node.addresses.own] == [tree.design.address]
    tree.remove("/proc/net/fib_trie")
    tree.write("/proc/net/if_inet6", "")
    with pytest.raises(EvidenceMissing, match="addresses are unknown"):
        _ = tree.node().addresses


def test_on_a_copied_tree_what_programs_tell_does_not_apply(tree: Tree) -> None:
    node = tree.node()
    for ask in ("units", "containers", "images", "probes", "etcd_state"):
        with pytest.raises(NotApplicable):
            getattr(node, ask)
    with pytest.raises(EvidenceMissing):
        _ = node.filesystems


def test_what_was_asked_in_vain_is_missing(tree: Tree) -> None:
    record = {"capturedAt": "2026-11-30T04:00:00Z", "missing": {"/drtool/units.json": "no systemctl on this machine"}}
    tree.write("/drtool/capture.json", json.dumps(record))
    with pytest.raises(EvidenceMissing, match="no systemctl"):
        _ = tree.node().units
    tree.write("/drtool/units.json", "{")
    with pytest.raises(EvidenceMissing, match="is no JSON"):
        _ = tree.node().units


def test_listeners_come_from_the_kernels_table_where_nobody_was_asked(tree: Tree) -> None:
    tree.write("/proc/net/tcp", "head\n 0: 0100007F:094B 00000000:0000 0A 0:0 00:0 0 0 0 7 1\n")
    [listener] = tree.node().listeners
    assert (listener.address, listener.port, listener.command, listener.evidence.line) == ("127.0.0.1", 2379, "", 2)
    tree.write("/drtool/listeners.json", '[{"address": "::", "port": 6443, "pid": 7, "command": "haproxy"}]')
    [listener] = tree.node().listeners
    assert (listener.port, listener.pid, listener.command) == (6443, 7, "haproxy")


def test_a_version_of_the_kubelet_from_the_bundle_or_its_journal(tree: Tree) -> None:
    (tree.place("/drtool/versions.json")).unlink(missing_ok=True)
    tree.journal("kubelet", 'I1130 "Kubelet version" kubeletVersion="v1.36.3"')
    assert tree.node().kubelet.version == (1, 36, 3)
    tree.write("/drtool/versions.json", '{"kubelet": "v1.37.2"}')
    assert tree.node().kubelet.version == (1, 37, 2)
