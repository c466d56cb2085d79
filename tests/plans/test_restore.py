"""A node's restore: judged before anything stops, then carried out on a real etcd that a small kubelet runs."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from drtool.commands import restore_node
from drtool.commands.restore_node import Wanted
from drtool.config import Config
from drtool.core.errors import DrtoolError, Refused, UsageError
from drtool.core.plan import Phase, carry_out, encode, state, undo
from drtool.host.journal import DiskJournal
from drtool.host.machine import Container, Host
from drtool.host.processes import Proc
from drtool.host.root import Root
from manifests.pki.issuing import issue_authority, new_key
from manifests.steps.putting import staged
from snapshots import bundle, scratch
from snapshots.etcd import Etcd
from tests.builders.etcd_db import key_bucket, snapshot
from tests.builders.live_node import LiveNode, live_node
from tests.builders.tree import Tree, laid
from tests.crash.test_kill_matrix import tree as contents
from tests.fakes.host import rooted
from tests.plans.test_fix import local

REMOTE = ("WaitForApiserver", "RestartContainers", "RestartKubelet")
ROOT_CA = b"/registry/configmaps/kube-system/kube-root-ca.crt"


@dataclass
class SmallKubelet:
    """Runs etcd while its manifest lies in the directory; stands for runtime, kubelet and clock at once."""

    node: LiveNode
    running: scratch.Running | None
    dead: bool = False
    stops: list[str] = field(default_factory=list)

    def reconcile(self) -> None:
        wanted = (self.node.directory / "etc/kubernetes/manifests/etcd.yaml").exists() and not self.dead
        if self.running and not wanted:
            self.running.stop()
            self.running = None
        elif wanted and self.running is None:
            self.running = self._started()

    def _started(self) -> scratch.Running:
        import subprocess

        old = self.node.etcd
        process = subprocess.Popen(old.process.args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return scratch.Running(process, old.data_dir, old.client_url, old.peer_url, old.log, old.tls)

    def all(self) -> tuple[Container, ...]:
        self.reconcile()
        return (Container("etcd-1", "etcd", "etcd-cp-1", True, 1e12),) if self.running else ()

    def stop(self, container: str, grace: int) -> None:
        self.stops.append(container)

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        self.reconcile()
        time.sleep(0.05)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[tuple[LiveNode, SmallKubelet]]:
    with live_node(tmp_path / "node") as live:
        kubelet = SmallKubelet(live, live.etcd)
        try:
            yield live, kubelet
        finally:
            if kubelet.running:
                kubelet.running.stop()


def host_of(live: LiveNode, kubelet: SmallKubelet, plan: str) -> Host:
    return replace(rooted(live.directory, plan=plan), containers=kubelet, processes=Proc(), clock=kubelet)


def saved(live: LiveNode, place: Path) -> Path:
    with Etcd(live.access) as etcd, place.open("wb") as file:
        for piece in etcd.snapshot():
            file.write(piece)
    return place


def test_a_node_is_restored_and_the_restore_taken_back(node: tuple[LiveNode, SmallKubelet], tmp_path: Path) -> None:
    live, kubelet = node
    live.fill(100)
    file = saved(live, tmp_path / "snapshot.db")
    with Etcd(live.access) as etcd:
        etcd.put(b"/registry/later", b"x")
        etcd.put(b"/registry/masterleases/192.0.2.9", b"x")
    planned = restore_node.planned(live.root, Wanted(str(file)), Config())
    made = restore_node.prepare(live.root, planned)
    assert made.bumped == made.revision + 1_000_000_000
    plan = local(planned.plan, REMOTE)
    host, journal = host_of(live, kubelet, plan.id), DiskJournal(live.root, plan.id)
    journal.start(encode(plan))
    carry_out(plan, host, journal)
    with Etcd(live.access) as etcd:
        assert etcd.count(b"/registry/pods/", b"/registry/pods0") == 100
        assert etcd.get(b"/registry/later") == ()
        assert etcd.count(b"/registry/masterleases/", b"/registry/masterleases0") == 0
        assert etcd.status().revision >= made.bumped
        etcd.put(b"/registry/since", b"x")
    undo(plan, host, journal)
    host.wait(lambda: "" if kubelet.all() else "not yet", 20, "etcd")
    scratch.wait(kubelet.running or live.etcd, 60)
    with Etcd(live.access) as etcd:
        assert len(etcd.get(b"/registry/later")) == 1
        assert etcd.get(b"/registry/since") == ()
    kept = list((live.directory / f"var/lib/etcd/.drtool-{plan.id}").rglob("db"))
    assert len(kept) == 1, "the restored directory is kept aside"


def test_an_etcd_that_does_not_come_up_is_taken_back(node: tuple[LiveNode, SmallKubelet], tmp_path: Path) -> None:
    from drtool.core.errors import TakenBack
    from snapshots.steps.data import WaitForEtcd

    live, kubelet = node
    live.fill(10)
    file = saved(live, tmp_path / "snapshot.db")
    planned = restore_node.planned(live.root, Wanted(str(file)), Config())
    restore_node.prepare(live.root, planned)
    plan = local(planned.plan, REMOTE)
    steps = tuple(replace(step, seconds=3) if isinstance(step, WaitForEtcd) else step for step in plan.steps)
    plan = replace(plan, steps=steps)
    kubelet.dead = False
    host, journal = host_of(live, kubelet, plan.id), DiskJournal(live.root, plan.id)
    journal.start(encode(plan))
    spoiled = live.directory / f"var/lib/etcd/.drtool-{plan.id}/new/member/snap/db"
    spoiled.write_bytes(b"not a db")
    with pytest.raises(TakenBack, match="etcd is not healthy"):
        carry_out(plan, host, journal)
    assert state(journal.marks()).phase is Phase.TAKEN_BACK
    host.wait(lambda: "" if kubelet.all() else "not yet", 20, "etcd")
    if kubelet.running:
        scratch.wait(kubelet.running, 60)
    with Etcd(live.access) as etcd:
        assert etcd.count(b"/registry/pods/", b"/registry/pods0") == 10


def stored(tree: Tree, place: Path, *pairs: tuple[bytes, bytes]) -> Path:
    """A small snapshot with these keys."""
    changes = [(revision, key, value) for revision, (key, value) in enumerate(pairs, 2)]
    meta = {b"consistent_index": (5).to_bytes(8), b"term": (2).to_bytes(8)}
    place.write_bytes(snapshot({b"key": key_bucket(changes), b"meta": meta}))
    return place


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = laid(tmp_path / "node")
    place = tree.place("/var/lib/etcd")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return tree


def prepared(tree: Tree, file: Path, force: bool = False) -> None:
    planned = restore_node.planned(Root(tree.root), Wanted(str(file), force=force), Config())
    restore_node.prepare(Root(tree.root), planned, force)


def test_another_clusters_backup_is_refused_and_nothing_is_left(tree: Tree, tmp_path: Path) -> None:
    foreign = issue_authority("kubernetes", datetime.now(UTC), new_key("ECDSA-P256")).certificate_pem
    file = stored(tree, tmp_path / "foreign.db", (ROOT_CA, b"k8s\0" + foreign))
    before = contents(tree.root)
    with pytest.raises(Refused, match="of another cluster") as caught:
        prepared(tree, file)
    assert caught.value.exit_status == 20
    assert contents(tree.root) == before
    prepared(tree, file, force=True)


def test_this_clusters_backup_is_taken(tree: Tree, tmp_path: Path) -> None:
    ca = tree.place("/etc/kubernetes/pki/ca.crt").read_bytes()
    prepared(tree, stored(tree, tmp_path / "own.db", (ROOT_CA, b"k8s\0" + ca)))


def test_what_was_prepared_can_be_discarded(tree: Tree, tmp_path: Path) -> None:
    file = stored(tree, tmp_path / "own.db", (b"/registry/a", b"b"))
    before = sorted(tree.root.rglob("*"))
    key = b"a key"
    gone = bundle.File("/etc/kubernetes/gone.key", "0600", 0, 0, len(key), hashlib.sha256(key).hexdigest(), key)
    planned = restore_node.planned(Root(tree.root), Wanted(str(file)), Config())
    planned = replace(planned, lost=restore_node.Lost((gone,)))
    restore_node.prepare(Root(tree.root), planned)
    assert (tree.root / staged(planned.plan.id, gone.path)[1:]).read_bytes() == key
    restore_node.discard(Root(tree.root), planned)
    left = {str(path.relative_to(tree.root)) for path in {*tree.root.rglob("*")} - {*before}}
    assert left <= {"var/lib/drtool", "var/lib/drtool/plans"}
    restore_node.discard(Root(tree.root), planned)


def test_secrets_of_an_unknown_key_are_refused(tree: Tree, tmp_path: Path) -> None:
    file = stored(tree, tmp_path / "x.db", (b"/registry/secrets/default/a", b"k8s:enc:aescbc:v1:lost:" + b"x" * 48))
    with pytest.raises(Refused, match="aescbc key lost"):
        prepared(tree, file)


def test_a_clock_a_year_off_is_refused(tree: Tree, tmp_path: Path) -> None:
    file = stored(tree, tmp_path / "x.db", (b"/registry/a", b"b"))
    authority = issue_authority("kubernetes", datetime.now(UTC) + timedelta(days=365), new_key("ECDSA-P256"))
    tree.write("/etc/kubernetes/pki/ca.crt", authority.certificate_pem)
    with pytest.raises(Refused, match="by this machine's clock"):
        prepared(tree, file)
    backup = restore_node.Fetched(Config(), "b", "0" * 64, datetime.now(UTC) + timedelta(days=365), {})
    planned = restore_node.planned(Root(tree.root), Wanted(str(file)), Config())
    with pytest.raises(Refused, match="before the backup was taken"):
        restore_node.check_clock(replace(planned, source=backup))


def test_a_damaged_backup_leaves_nothing(tree: Tree, tmp_path: Path) -> None:
    file = stored(tree, tmp_path / "x.db", (b"/registry/a", b"b"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    before = contents(tree.root)
    with pytest.raises(DrtoolError):
        prepared(tree, file)
    assert contents(tree.root) == before


def test_all_members_need_the_same_backup(tree: Tree, tmp_path: Path) -> None:
    one = stored(tree, tmp_path / "one.db", (b"/registry/a", b"b"))
    two = stored(tree, tmp_path / "two.db", (b"/registry/a", b"c"))
    members = "cp-1=https://192.0.2.111:2380,cp-2=https://192.0.2.112:2380"
    first = restore_node.planned(Root(tree.root), Wanted(str(one), members), Config())
    token = first.how.cluster.token
    assert any(f"--token {token}" in line for line in first.plan.by_hand)
    again = restore_node.planned(Root(tree.root), Wanted(str(one), members, token), Config())
    assert again.how.cluster.cluster_id == first.how.cluster.cluster_id
    with pytest.raises(Refused, match="of another backup"):
        restore_node.planned(Root(tree.root), Wanted(str(two), members, token), Config())


def test_a_member_that_is_not_this_node_is_refused(tree: Tree, tmp_path: Path) -> None:
    file = stored(tree, tmp_path / "x.db", (b"/registry/a", b"b"))
    with pytest.raises(UsageError, match="no member 'cp-1'"):
        restore_node.planned(Root(tree.root), Wanted(str(file), "cp-2=https://192.0.2.112:2380"), Config())
    with pytest.raises(UsageError, match="no such file"):
        restore_node.planned(Root(tree.root), Wanted("/nowhere/x.db"), Config())
