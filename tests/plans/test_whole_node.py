"""A node that lost its files, its etcd's data too, put back from a sealed backup; and the restore taken back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from drtool.commands import restore_node
from drtool.commands.restore_node import Wanted
from drtool.commands.whole_node import lost
from drtool.config import Config
from drtool.core.errors import CannotTell, Refused
from drtool.core.plan import carry_out, encode, undo
from drtool.host.journal import DiskJournal
from manifests.node import read
from manifests.pki.issuing import new_key, public_pem
from snapshots.etcd import Etcd
from tests.builders.live_node import LiveNode, live_node
from tests.commands.backing import config_for, run
from tests.crash.test_kill_matrix import tree as contents
from tests.plans.test_fix import local
from tests.plans.test_restore import REMOTE, SmallKubelet, host_of

LOST = ("etc/kubernetes", "var/lib/kubelet", "var/lib/etcd")


@pytest.fixture
def backed_up(tmp_path: Path) -> Iterator[tuple[LiveNode, SmallKubelet, Config]]:
    with live_node(tmp_path / "node") as live:
        live.fill(100)
        config = config_for(tmp_path)
        run(config, live)
        kubelet = SmallKubelet(live, live.etcd)
        try:
            yield live, kubelet, config
        finally:
            if kubelet.running:
                kubelet.running.stop()


def lose(live: LiveNode, kubelet: SmallKubelet) -> None:
    live.etcd.stop()
    kubelet.running = None
    for place in LOST:
        shutil.rmtree(live.directory / place, ignore_errors=True)


def test_everything_lost_comes_back_with_its_modes(backed_up: tuple[LiveNode, SmallKubelet, Config]) -> None:
    live, kubelet, config = backed_up
    before = {path: mark for path, mark in contents(live.directory).items() if path.startswith("etc/kubernetes/")}
    lose(live, kubelet)
    emptied = contents(live.directory)
    planned = restore_node.planned(live.root, Wanted("latest"), config)
    restore_node.prepare(live.root, planned)
    plan = local(planned.plan, REMOTE)
    assert b"PRIVATE KEY" not in encode(plan)
    host, journal = host_of(live, kubelet, plan.id), DiskJournal(live.root, plan.id)
    journal.start(encode(plan))
    carry_out(plan, host, journal)
    after = contents(live.directory)
    files = {path: mark for path, mark in before.items() if not (live.directory / path).is_dir()}
    assert {path: after.get(path) for path in files} == files
    with Etcd(live.access) as etcd:
        assert etcd.count(b"/registry/pods/", b"/registry/pods0") == 100
    undo(plan, host, journal)
    left = {path: mark for path, mark in contents(live.directory).items() if not path.startswith("var/lib/etcd")}
    assert left == {path: mark for path, mark in emptied.items() if not path.startswith("var/lib/etcd")}


def test_one_lost_key_comes_back_and_what_differs_stays(backed_up: tuple[LiveNode, SmallKubelet, Config]) -> None:
    live, _, config = backed_up
    sa_key = live.directory / "etc/kubernetes/pki/sa.key"
    was = sa_key.read_bytes()
    sa_key.unlink()
    admin = live.directory / "etc/kubernetes/admin.conf"
    admin.write_text(admin.read_text() + "# mine\n")
    planned = restore_node.planned(live.root, Wanted("latest"), config)
    assert [file.path for file in planned.lost.files] == ["/etc/kubernetes/pki/sa.key"]
    assert any("admin.conf is not as it was" in line for line in planned.plan.by_hand)
    restore_node.prepare(live.root, planned)
    copy = live.directory / f"var/lib/drtool/plans/{planned.plan.id}/staged/etc/kubernetes/pki/sa.key"
    assert copy.read_bytes() == was
    assert copy.stat().st_mode & 0o077 == 0


def test_another_service_account_key_is_refused(backed_up: tuple[LiveNode, SmallKubelet, Config]) -> None:
    live, _, config = backed_up
    (live.directory / "etc/kubernetes/pki/sa.pub").write_bytes(public_pem(new_key("ECDSA-P256")))
    with pytest.raises(Refused, match="every ServiceAccount token"):
        restore_node.planned(live.root, Wanted("latest"), config)
    assert restore_node.planned(live.root, Wanted("latest", force=True), config).plan.steps


def test_of_another_nodes_bundle_only_what_is_shared_is_used(backed_up: tuple[LiveNode, SmallKubelet, Config]) -> None:
    from drtool.commands.fetch import node_bundle, shelf

    live, kubelet, config = backed_up
    held = shelf(config)
    bundle = node_bundle(held, held.choose("latest"))
    assert bundle is not None
    lose(live, kubelet)
    (live.directory / "etc/hostname").write_text("cp-2\n")
    paths = {file.path for file in lost(live.root, read(live.root), bundle).files}
    assert "/etc/kubernetes/pki/sa.key" in paths
    assert "/etc/kubernetes/pki/apiserver.crt" not in paths


def test_a_lost_node_and_a_bare_snapshot_do_not_make_a_plan(
    backed_up: tuple[LiveNode, SmallKubelet, Config], tmp_path: Path
) -> None:
    live, kubelet, config = backed_up
    file = tmp_path / "snapshot.db"
    with Etcd(live.access) as etcd:
        file.write_bytes(b"".join(bytes(piece) for piece in etcd.snapshot()))
    lose(live, kubelet)
    with pytest.raises(CannotTell, match="runs no etcd"):
        restore_node.planned(live.root, Wanted(str(file)), config)
