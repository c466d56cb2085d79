from __future__ import annotations

from pathlib import Path

import pytest

from drtool.core.errors import UsageError
from drtool.plans.move_endpoint import Apiserver, move_endpoint
from drtool.plans.site import Draft
from manifests.kubeadm import Design
from tests.builders.tree import Tree, laid

OLD, NEW, OWN = "192.0.2.111:6443", "k8s.example.org:6443", "192.0.2.111:6443"
THREE = tuple(f"192.0.2.11{n}:6443" for n in (1, 2, 3))


def known(*servers: str) -> tuple[Apiserver, ...]:
    """All three API servers, of which these know the new name."""
    return tuple(Apiserver(server, server in servers) for server in THREE)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path, Design(endpoint=OLD, members={"cp-1": "192.0.2.111", "cp-2": "192.0.2.112"}))


def kinds(draft: Draft) -> list[str]:
    return [type(step).__name__ for step in draft.steps]


def test_certificates_come_first_and_the_rest_waits_for_every_api_server(tree: Tree) -> None:
    draft = move_endpoint(tree.node(), NEW, known())
    assert kinds(draft) == ["IssueCertificate", "WaitForName"]
    assert "k8s.example.org" in draft.steps[0].subject.names  # type: ignore[attr-defined]
    assert "192.0.2.112:6443, 192.0.2.113:6443" in draft.by_hand[0]


def test_once_all_others_know_the_name_everything_moves(tree: Tree) -> None:
    draft = move_endpoint(tree.node(), NEW, known(*THREE[1:]))
    assert draft.title == f"endpoint {OLD} -> {NEW}"
    assert kinds(draft)[0] == "IssueCertificate"
    assert kinds(draft).count("RewriteConfigMap") == 3
    assert kinds(draft).count("ProveNames") == 3
    edited = [getattr(step, "path", "") for step in draft.steps]
    assert "/etc/kubernetes/admin.conf" in edited
    assert "/etc/kubernetes/kubelet.conf" not in edited, "it points to this node's own API server"
    assert any("on every worker" in line for line in draft.by_hand)


def test_on_another_node_the_kubelet_moves_too_where_it_named_the_old_one(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(name="cp-2", address="192.0.2.112", endpoint=OLD))
    draft = move_endpoint(tree.node(), NEW, known(*THREE))
    names_old = OLD in tree.read("/etc/kubernetes/kubelet.conf")
    edited = [getattr(step, "path", "") for step in draft.steps]
    assert ("/etc/kubernetes/kubelet.conf" in edited) == names_old
    assert ("RestartKubelet" in kinds(draft)) == names_old


def test_moving_where_it_is_already_is_no_plan(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(endpoint=NEW))
    assert move_endpoint(tree.node(), NEW, known(*THREE)).steps == ()


@pytest.mark.parametrize("to", ["k8s.example.org", "", ":6443", "http://x:1/y", "a b:1", "192.0.2.300:6443", "-x:1"])
def test_what_is_no_host_and_port_is_refused(to: str, tree: Tree) -> None:
    with pytest.raises(UsageError, match="no HOST:PORT"):
        move_endpoint(tree.node(), to, ())
