"""Quorum lost: a real member killed with its log ahead of its db becomes a cluster of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from drtool.commands import rebuild as command
from drtool.core.errors import Refused
from drtool.core.plan import carry_out, decode, encode, undo
from drtool.host.journal import DiskJournal
from drtool.plans.catalogue import STEPS
from drtool.plans.rebuild import Standing, flag_edits, join
from manifests.editing import Set, changed, edit
from snapshots import scratch
from snapshots.etcd import Etcd
from tests.builders.live_node import LiveNode, live_node
from tests.builders.tree import Tree, laid
from tests.plans.test_fix import local
from tests.plans.test_restore import REMOTE, SmallKubelet, host_of

OTHERS = (Standing("a1", "cp-2", ("https://192.0.2.112:2380",)), Standing("b2", "cp-3", ("https://192.0.2.113:2380",)))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[tuple[LiveNode, SmallKubelet]]:
    with live_node(tmp_path / "node") as live:
        kubelet = SmallKubelet(live, live.etcd)
        try:
            yield live, kubelet
        finally:
            if kubelet.running:
                kubelet.running.stop()


def test_a_survivor_becomes_a_cluster_of_one_and_back(node: tuple[LiveNode, SmallKubelet]) -> None:
    live, kubelet = node
    live.fill(100)
    with Etcd(live.access) as etcd:
        before = etcd.status()
        etcd.add_member(("https://127.0.0.9:2380",))
    with Etcd(live.access, timeout=2.0) as etcd:
        assert not etcd.healthy(), "the second member never comes: quorum is lost"
    plan = local(command.plan(live.root, []), REMOTE)
    assert decode(encode(plan), STEPS) == plan
    host, journal = host_of(live, kubelet, plan.id), DiskJournal(live.root, plan.id)
    journal.start(encode(plan))
    carry_out(plan, host, journal)
    with Etcd(live.access) as etcd:
        after = etcd.status()
        assert etcd.count(b"/registry/pods/", b"/registry/pods0") == 100
        assert len(etcd.members()) == 1
    assert after.cluster_id != before.cluster_id
    assert after.revision > 1_000_000_000
    undo(plan, host, journal)
    host.wait(lambda: "" if kubelet.all() else "not yet", 20, "etcd")
    assert len(list((live.directory / f"var/lib/etcd/.drtool-{plan.id}").rglob("db"))) == 1


def test_where_another_directory_is_newer_it_is_that_nodes_turn(
    node: tuple[LiveNode, SmallKubelet], tmp_path: Path
) -> None:
    import shutil

    live, kubelet = node
    live.fill(10)
    live.etcd.stop()
    kubelet.running = None
    own, newer = live.directory / "var/lib/etcd", tmp_path / "cp-2"
    shutil.copytree(own, newer)
    client, peer = scratch.free_ports(2)
    with scratch.started(own, client, peer, name="cp-1") as again:
        scratch.wait(again, 60)
    shutil.copytree(own, tmp_path / "swap")
    shutil.rmtree(own)
    shutil.copytree(newer, own)
    with pytest.raises(Refused, match="has newer data than this node"):
        command.plan(live.root, [tmp_path / "swap"])


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def test_a_member_joins_as_a_learner_with_an_empty_directory(tree: Tree) -> None:
    draft = join(tree.node(), "20261130T080000Z-join-0a1b2c", "https://192.0.2.112:2379", OTHERS)
    kinds = [type(step).__name__ for step in draft.steps]
    assert kinds[:6] == ["ParkStaticPod", "ParkStaticPod", "SwapDataDir", "AddMember", "EditFile", "UnparkStaticPod"]
    assert kinds.index("PromoteMember") < kinds.index("WaitForEtcd")
    words = draft.steps[4].describe()
    assert "cp-2=https://192.0.2.112:2380,cp-3=https://192.0.2.113:2380" in words
    assert "--initial-cluster-state=existing" in words
    assert "/manifests/" not in draft.steps[4].path, "it is edited where it is parked"  # type: ignore[attr-defined]


def test_a_member_that_is_still_listed_is_removed_first(tree: Tree) -> None:
    mine = Standing("c3", "cp-1", ("https://192.0.2.111:2380",))
    draft = join(tree.node(), "20261130T080000Z-join-0a1b2c", "https://192.0.2.112:2379", (*OTHERS, mine))
    kinds = [type(step).__name__ for step in draft.steps]
    assert kinds.index("RemoveMember") < kinds.index("AddMember")


def test_nobody_joins_itself(tree: Tree) -> None:
    mine = Standing("c3", "cp-1", ("https://192.0.2.111:2380",))
    with pytest.raises(Refused, match="no member but this node itself"):
        join(tree.node(), "20261130T080000Z-join-0a1b2c", "https://192.0.2.111:2379", (mine,))


def test_a_flag_is_set_or_added(tree: Tree) -> None:
    etcd = tree.node().etcd
    (edit_one,) = flag_edits(etcd, "name", "cp-9")
    assert isinstance(edit_one, Set)
    data = tree.place(etcd.path).read_bytes()
    added = changed(data, edit(etcd.path, data, tuple(flag_edits(etcd, "initial-cluster-state", "existing"))))
    assert len(added.splitlines()) == len(data.splitlines()) + 1
