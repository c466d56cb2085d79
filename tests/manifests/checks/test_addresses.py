"""Addresses and endpoints: each check on a healthy node and on a broken one."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.commands.check import judged
from drtool.core.report import Status
from tests.builders.tree import Tree, laid, outcomes

MANIFESTS = "/etc/kubernetes/manifests"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def test_a_healthy_node_passes(tree: Tree) -> None:
    found = outcomes(tree.node())
    for id_ in ("node-address-changed", "advertise-address-not-local", "etcd-urls-not-local"):
        assert found[id_].status is Status.PASSED


def test_a_moved_address_is_the_one_cause(tree: Tree) -> None:
    tree.addresses("192.0.2.120")
    verdict = judged(tree.node()).verdict
    assert verdict.root_causes == ("node-address-changed",)
    assert verdict.findings[0].finding.title == "This node's address 192.0.2.111 is gone; it has 192.0.2.120"
    assert verdict.findings[0].finding.fix is not None
    assert verdict.findings[0].finding.fix.command == "drtool readdress --to 192.0.2.120"


def test_unknown_addresses_are_unknown(tree: Tree) -> None:
    tree.remove("/proc")
    assert outcomes(tree.node())["node-address-changed"].status is Status.UNKNOWN
