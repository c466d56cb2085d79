from __future__ import annotations

from pathlib import Path

import pytest

from drtool.commands import readdress as command
from drtool.core.errors import CannotTell, Refused, UsageError
from drtool.core.plan import carry_out, decode, encode, undo
from drtool.host.journal import DiskJournal
from drtool.host.root import Root
from drtool.plans.catalogue import STEPS
from drtool.plans.readdress import Peer, readdress
from drtool.plans.site import Draft
from manifests.kubeadm import Design
from manifests.steps.running import StartControlPlane, StopControlPlane
from snapshots.steps.members import UpdateMember
from tests.builders.tree import Tree, laid
from tests.builders.whole import whole
from tests.crash.test_kill_matrix import tree as contents
from tests.plans.test_fix import failing, local
from tests.plans.test_fix import host_of as host_at

OLD, NEW = "192.0.2.111", "192.0.2.120"
REMOTE = ("WaitForEtcd", "WaitForApiserver", "UpdateMember", "RewriteConfigMap", "RestartDaemonSet")
PEERS = tuple(Peer(f"cp-{n}", (f"https://192.0.2.11{n}:2380",), ()) for n in (1, 2, 3))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = laid(tmp_path / "node")
    tree.addresses("127.0.0.1", NEW)
    return tree


def kinds(draft: Draft) -> list[str]:
    return [type(step).__name__ for step in draft.steps]


def test_every_place_that_names_the_old_address_is_covered(tree: Tree) -> None:
    tree.write("/etc/hosts", f"127.0.0.1 localhost\n{OLD} cp-1 # ours\n192.0.2.1110 x\n")
    tree.write("/var/lib/kubelet/kubeadm-flags.env", f'KUBELET_KUBEADM_ARGS="--node-ip={OLD} --v=2"\n')
    assert "node-address-changed" in failing(tree.root)
    before = contents(tree.root)
    plan = command.plan(Root(tree.root), "")
    assert plan.title == f"this node's address: {OLD} -> {NEW}"
    assert decode(encode(plan), STEPS) == plan
    here = local(plan, REMOTE)
    host, journal = host_at(tree.root, here), DiskJournal(Root(tree.root), plan.id)
    journal.start(encode(here))
    carry_out(here, host, journal)
    for path in tree.root.rglob("*"):
        if path.is_file() and "var/lib/drtool" not in str(path):
            assert f"{OLD}:".encode() not in path.read_bytes(), path
    assert tree.read("/etc/hosts") == f"127.0.0.1 localhost\n{NEW} cp-1 # ours\n192.0.2.1110 x\n"
    assert f"--node-ip={NEW} " in tree.read("/var/lib/kubelet/kubeadm-flags.env")
    for name in ("apiserver", "etcd/server", "etcd/peer"):
        certificate = tree.node().certificate(f"/etc/kubernetes/pki/{name}.crt")
        assert certificate.covers(NEW)
        assert not certificate.covers(OLD)
    assert not {"node-address-changed", "san-missing-own-address", "mixed-old-new-address"} & failing(tree.root)
    undo(here, host, journal)
    assert contents(tree.root) == before


def test_a_single_member_is_updated_after_it_runs_and_one_of_three_before(tree: Tree) -> None:
    alone, one_of_three = readdress(tree.node(), NEW), readdress(tree.node(), NEW, PEERS)
    start, update = StartControlPlane.__name__, UpdateMember.__name__
    assert kinds(alone).index(start) < kinds(alone).index(update)
    assert kinds(one_of_three).index(update) < kinds(one_of_three).index(start)
    (asked,) = (step.access.endpoints for step in one_of_three.steps if isinstance(step, UpdateMember))
    assert asked == ("https://192.0.2.112:2379", "https://192.0.2.113:2379")
    assert kinds(alone)[0] == StopControlPlane.__name__


def test_other_names_of_the_certificate_stay(tree: Tree) -> None:
    draft = readdress(tree.node(), NEW)
    wanted = next(step.subject.names for step in draft.steps if getattr(step, "path", "").endswith("apiserver.crt"))
    assert set(wanted) >= {"cp-1", "kubernetes.default.svc.cluster.local", "10.96.0.1", NEW}
    assert OLD not in wanted


def test_behind_a_shared_endpoint_only_this_nodes_own_places_change(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(endpoint="k8s.example.org:6443"))
    tree.addresses("127.0.0.1", NEW)
    draft = readdress(tree.node(), NEW, PEERS)
    edited = [getattr(step, "path", "") for step in draft.steps]
    assert "/etc/kubernetes/admin.conf" not in edited
    assert "/etc/kubernetes/scheduler.conf" in edited
    assert "RestartDaemonSet" not in kinds(draft)
    assert not any("on every other node" in line for line in draft.by_hand)


@pytest.mark.parametrize(
    ("addresses", "to", "error", "words"),
    [
        ((OLD,), "", UsageError, "still on this node"),
        ((NEW, "192.0.2.130"), "", UsageError, "which address is the new one"),
        ((NEW,), OLD, UsageError, "already configured"),
        ((NEW,), "192.0.2.9", Refused, "on no interface"),
        ((NEW,), "cp-1", UsageError, "no IP address"),
        ((NEW, "127.0.0.1"), "127.0.0.1", UsageError, "no other node reaches"),
    ],
)
def test_an_unclear_target_is_refused(
    addresses: tuple[str, ...], to: str, error: type[Exception], words: str, tree: Tree
) -> None:
    tree.addresses("127.0.0.1", *addresses)
    with pytest.raises(error, match=words):
        command.plan(Root(tree.root), to)


def test_networks_of_pods_and_services_are_no_candidates(tree: Tree) -> None:
    tree.addresses("127.0.0.1", NEW, "10.244.0.1", "10.96.0.10", "172.17.0.1")
    assert command.plan(Root(tree.root), "").title.endswith(NEW)


def test_without_the_cas_key_nothing_is_planned(tree: Tree) -> None:
    tree.remove("/etc/kubernetes/pki/ca.key")
    with pytest.raises(Refused, match=r"ca\.key is not on this node"):
        command.plan(Root(tree.root), NEW)


def test_a_worker_has_no_such_plan(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="no kubeadm control plane"):
        command.plan(Root(tmp_path), NEW)


def test_a_real_tree_after_its_address_changed(tmp_path: Path) -> None:
    plan = command.plan(Root(whole("lab-address-changed-1.37", tmp_path).root), "")
    assert plan.title == "this node's address: 198.51.100.11 -> 198.51.100.21"
