"""`drtool addresses` on a node, on paper, and asked for a layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from drtool.cli.addresses import command
from drtool.commands.addresses import NETWORK, judge_node, judge_plan, proposed
from drtool.core.errors import UsageError
from drtool.host.root import Root
from tests.builders.tree import laid


def test_a_node_tells_its_ranges_with_their_lines(tmp_path: Path) -> None:
    laid(tmp_path)
    found = judge_node(Root(tmp_path))
    assert found.good
    assert [one.what for one in found.layout.all] == ["Pods", "Services", "nodes"]
    assert found.layout.pods[0].source.startswith("/etc/kubernetes/manifests/kube-controller-manager.yaml:")
    assert found.capacities[0].total == 256 * 110
    assert all(what.startswith(NETWORK) for what in found.unseen)


def test_what_a_node_does_not_tell_is_said(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.set_flag("kube-controller-manager", "cluster-cidr", None)
    tree.remove("/var/lib/kubelet/config.yaml")
    unseen = judge_node(Root(tmp_path)).unseen
    assert any("cluster-cidr" in what for what in unseen)
    assert any("maxPods" in what for what in unseen)


def test_a_conflist_that_lacks_what_pods_ask_for(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.write("/etc/cni/net.d/10-x.conflist", '{"cniVersion": "0.3.1", "name": "x", "plugins": [{"type": "bridge"}]}')
    found = judge_node(Root(tmp_path))
    assert found.good
    assert [judged.id for judged in found.network] == ["cni-version-too-old"]
    assert "NETWORK [warning]" in CliRunner().invoke(command, ["--root", str(tmp_path)], standalone_mode=False).output


def test_a_plan_on_paper(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("pods: [10.244.0.0/22]\nservices: 10.244.0.0/16\nnodes: [192.0.2.0/24]\nnodeCount: 7\n")
    found = judge_plan(plan)
    assert not found.good
    assert len(found.clashes) == 1
    assert found.layout.services[0].source == f"{plan}:2: services: 10.244.0.0/16"
    plan.write_text("pods: [10.244.0.0/16]\nnodeMask: 99\n")
    assert [one.why for one in judge_plan(plan).problems] == ["a node's block of /99 is longer than an IPv4 address"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pods: [10.244.0.0/33]\n", ":1: 10.244.0.0/33 is no range"),
        ("services: 10.96.0.0/12\nnodeCount: many\n", ":2: nodeCount is a whole number"),
        ("podz: 10.244.0.0/16\n", "unknown: podz"),
        ("- 10.244.0.0/16\n", "unknown: no mapping"),
        ("pods: [\n", ":2:"),
        ("", "empty"),
    ],
)
def test_a_plan_that_is_none(tmp_path: Path, text: str, words: str) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    with pytest.raises(UsageError) as caught:
        judge_plan(plan)
    assert words in str(caught.value)
    with pytest.raises(UsageError):
        judge_plan(tmp_path / "absent.yaml")


def test_a_proposal_avoids_the_hosts_own_networks(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    tree.write("/proc/net/route", head + "eth0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n")
    found = proposed(50, 110, Root(tmp_path), dual_stack=True)
    assert found.good
    assert str(found.layout.pods[0].network).startswith("172.16.")


def test_the_command(tmp_path: Path) -> None:
    laid(tmp_path)
    done = CliRunner().invoke(command, ["--root", str(tmp_path), "-o", "json"], standalone_mode=False)
    assert done.return_value == 0
    assert json.loads(done.output)["capacities"][0]["nodes"] == 256
    table = CliRunner().invoke(command, ["--root", str(tmp_path)], standalone_mode=False)
    assert "256 nodes with a /24 each" in table.output
    with pytest.raises(UsageError):
        CliRunner().invoke(command, ["--nodes", "3"], standalone_mode=False, catch_exceptions=False)
