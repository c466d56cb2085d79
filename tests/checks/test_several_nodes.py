"""Nodes of one cluster judged together, and the JSON that comes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from drtool.checks import Case
from drtool.checks.apiserver import shared_authorities_differ
from drtool.checks.kubelet import skew_across_nodes
from drtool.cli.check import command
from drtool.commands.check import as_data, check, check_together, together_as_data
from drtool.core.check import NotApplicable
from drtool.host.root import Root
from manifests.kubeadm import Design
from tests.builders.tree import NOW, Tree, laid

FIRST = Design(endpoint="192.0.2.100:6443")
SECOND = Design(name="cp-2", address="192.0.2.112", endpoint="192.0.2.100:6443")


def pair(tmp_path: Path) -> tuple[Tree, Tree]:
    one = laid(tmp_path / "1", FIRST)
    return one, laid(tmp_path / "2", SECOND, one.authorities)


def test_nodes_that_share_their_authorities(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    assert list(shared_authorities_differ.find(Case(one.node(), (two.node(),)))) == []


def test_a_node_of_another_cluster_is_named_by_the_majority(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    third = laid(tmp_path / "3", Design(name="cp-3", address="192.0.2.113"), {})
    nodes = [tree.node() for tree in (one, two, third)]
    assert list(shared_authorities_differ.find(Case(nodes[0], (nodes[1], nodes[2])))) == []
    found = list(shared_authorities_differ.find(Case(nodes[2], (nodes[0], nodes[1]))))
    assert len(found) == 2


def test_alone_there_is_nothing_to_compare(tmp_path: Path) -> None:
    node = laid(tmp_path).node()
    for check_ in (shared_authorities_differ, skew_across_nodes):
        with pytest.raises(NotApplicable):
            list(check_.find(Case(node)))


def test_skew(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    two.sub("/etc/kubernetes/manifests/kube-apiserver.yaml", r"kube-apiserver:v[\d.]+", "kube-apiserver:v1.36.3")
    newer, older = one.node(), two.node()
    assert list(skew_across_nodes.find(Case(newer, (older,)))) == []
    one.write("/drtool/versions.json", '{"kubelet": "v1.37.2", "containerd": null, "crio": null}')
    found = list(skew_across_nodes.find(Case(one.node(), (older,))))
    assert "kubelet 1.37.2 here is newer" in found[0].title
    two.sub("/etc/kubernetes/manifests/kube-apiserver.yaml", r"kube-apiserver:v[\d.]+", "kube-apiserver:v1.35.3")
    found = list(skew_across_nodes.find(Case(two.node(), (newer,))))
    assert "more than one minor behind" in found[0].title


def test_the_json_of_several_adds_to_that_of_one(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    two.addresses("192.0.2.120")
    reports = check_together([Root(one.root), Root(two.root)], NOW, probe=False)
    whole = together_as_data(reports)
    alone = as_data(check(Root(one.root), NOW, probe=False))
    assert set(whole) - set(alone) == {"nodes"}
    assert [node["node"]["name"] for node in whole["nodes"]] == ["cp-1", "cp-2"]
    assert whole["nodes"][1]["rootCauses"] == ["node-address-changed"] == whole["rootCauses"]


def test_one_root_gives_no_list_of_nodes(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    found = CliRunner().invoke(command, ["--root", str(tree.root), "--no-probe", "-o", "json"], standalone_mode=False)
    assert "nodes" not in json.loads(found.output)


def test_several_roots_on_the_command_line(tmp_path: Path) -> None:
    one, two = pair(tmp_path)
    found = CliRunner().invoke(
        command, ["--root", str(one.root), "--root", str(two.root), "--no-probe", "-o", "json"], standalone_mode=False
    )
    assert len(json.loads(found.output)["nodes"]) == 2
    text = CliRunner().invoke(
        command, ["--root", str(one.root), "--root", str(two.root), "--no-probe"], standalone_mode=False
    )
    assert "cp-1: kubeadm-stacked" in text.output
    assert "cp-2: kubeadm-stacked" in text.output
