"""Steps on a real etcd: waiting, members, space, counts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from drtool.core.errors import Refused
from drtool.core.plan import Ahead
from drtool.host.machine import Host, TimedOut
from snapshots import scratch
from snapshots.etcd import Etcd, EtcdAccess, EtcdRefused
from snapshots.steps.data import Access, ClearMasterLeases, CompareCounts, SwapDataDir, WaitForEtcd, prefix_range
from snapshots.steps.members import AddMember, DisarmNoSpace, FreeSpace, RemoveMember, UpdateMember
from tests.fakes.host import rooted

NEW = ("http://127.0.0.9:2380",)


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[scratch.Running]:
    with scratch.running(tmp_path / "data") as etcd:
        yield etcd


@pytest.fixture
def host(tmp_path: Path) -> Host:
    (tmp_path / "node").mkdir()
    return rooted(tmp_path / "node")


def members(etcd: scratch.Running) -> list[tuple[str, ...]]:
    with Etcd(EtcdAccess((etcd.client_url,))) as client:
        return [one.peer_urls for one in client.members()]


def test_waiting_ends_with_the_first_endpoint_that_answers(etcd: scratch.Running, host: Host) -> None:
    WaitForEtcd(Access(("http://127.0.0.1:1", etcd.client_url))).apply(host)
    with pytest.raises(TimedOut, match=r"etcd is not healthy: after 3 s etcd at http://127[.]0[.]0[.]1:1 cannot"):
        WaitForEtcd(Access(("http://127.0.0.1:1",)), 3).apply(host)


def test_a_members_url_is_updated_and_put_back(etcd: scratch.Running, host: Host) -> None:
    access = Access((etcd.client_url,))
    (old,) = members(etcd)
    step = UpdateMember(access, "default", old, NEW)
    step.revert(host)
    assert members(etcd) == [old]
    step.apply(host)
    step.apply(host)
    assert members(etcd) == [NEW]
    step.revert(host)
    assert members(etcd) == [old]


def test_member_steps_tell_beforehand_that_what_they_remember_is_gone(host: Host) -> None:
    nowhere = Access(("http://127.0.0.1:1",))
    for step in (UpdateMember(nowhere, "x", NEW, NEW), AddMember(nowhere, "x", NEW)):
        step.foresee(host, Ahead(), complete=False)
        with pytest.raises(Refused, match=r"/remembered/etcd-.*x is gone"):
            step.foresee(host, Ahead(), complete=True)
    removed = RemoveMember(nowhere, "1f", "x", NEW)
    removed.foresee(host, Ahead(), complete=False)
    with pytest.raises(Refused, match="cannot return"):
        removed.foresee(host, Ahead(), complete=True)


def test_a_member_that_is_not_in_the_list_is_named(etcd: scratch.Running, host: Host) -> None:
    with pytest.raises(Refused, match="no member x with peer URL"):
        UpdateMember(Access((etcd.client_url,)), "x", ("http://192.0.2.1:1",), ("http://192.0.2.2:1",)).apply(host)


def test_a_learner_is_added_once_and_removed_by_undo(etcd: scratch.Running, host: Host) -> None:
    step = AddMember(Access((etcd.client_url,)), "new", NEW)
    step.apply(host)
    step.apply(host)
    assert members(etcd).count(NEW) == 1
    step.revert(host)
    assert NEW not in members(etcd)


def test_a_removed_member_cannot_be_taken_back(etcd: scratch.Running, host: Host) -> None:
    with Etcd(EtcdAccess((etcd.client_url,))) as client:
        added = client.add_member(NEW, learner=True)
    step = RemoveMember(Access((etcd.client_url,)), f"{added.id:x}", "", NEW)
    step.revert(host)
    step.apply(host)
    step.apply(host)
    assert NEW not in members(etcd)
    with pytest.raises(Refused, match="cannot return with its old data"):
        step.revert(host)


def test_space_is_freed_and_the_alarm_cleared(tmp_path: Path, host: Host) -> None:
    with scratch.running(tmp_path / "full", extra=("--quota-backend-bytes", "4194304")) as etcd:
        access = Access((etcd.client_url,))
        with Etcd(EtcdAccess((etcd.client_url,))) as client:
            with suppress(EtcdRefused):
                for _ in range(100):
                    client.put(b"/registry/one", b"x" * 200_000)
            assert [alarm for _, alarm in client.alarms()] == ["NOSPACE"]
        FreeSpace(access, compact=True).apply(host)
        DisarmNoSpace(access).apply(host)
        WaitForEtcd(access).apply(host)
        with Etcd(EtcdAccess((etcd.client_url,))) as client:
            client.put(b"/registry/two", b"y")


def test_counts_are_compared_by_prefix(etcd: scratch.Running, host: Host) -> None:
    access = Access((etcd.client_url,))
    with Etcd(EtcdAccess((etcd.client_url,))) as client:
        for key in (b"/registry/pods/a", b"/registry/pods/b", b"/registry/masterleases/192.0.2.1"):
            client.put(key, b"")
    CompareCounts(access, (("/registry/pods/", 2),)).apply(host)
    with pytest.raises(Refused, match="/registry/pods/ 2 instead of 3"):
        CompareCounts(access, (("/registry/pods/", 3),)).apply(host)
    ClearMasterLeases(access).apply(host)
    CompareCounts(access, (("/registry/masterleases/", 0), ("/registry/pods/", 2))).apply(host)


def test_the_range_of_a_prefix_ends_with_it() -> None:
    assert prefix_range("/registry/pods/") == (b"/registry/pods/", b"/registry/pods0")


def test_an_emptied_directory_takes_its_old_member_back(host: Host) -> None:
    root = host.root.directory
    (root / "etcd/member").mkdir(parents=True)
    (root / "etcd/member/old").write_text("old")
    step = SwapDataDir("/etcd", "/etcd/.x/new", "/etcd/.x/old", emptied=True)
    step.apply(host)
    step.apply(host)
    assert not (root / "etcd/member").exists()
    (root / "etcd/member").mkdir()
    (root / "etcd/member/joined").write_text("joined")
    step.revert(host)
    step.revert(host)
    assert (root / "etcd/member/old").read_text() == "old"
    assert (root / "etcd/.x/new/member/joined").read_text() == "joined"


def test_a_lost_prepared_directory_is_refused(host: Host) -> None:
    (host.root.directory / "etcd").mkdir()
    step = SwapDataDir("/etcd", "/etcd/.x/new", "/etcd/.x/old")
    with pytest.raises(Refused, match="is gone, and so is"):
        step.apply(host)
    (host.root.directory / "etcd/member").mkdir()
    with pytest.raises(Refused, match="is gone, and was never put in the place of /etcd/member"):
        step.apply(host)
    step.revert(host)
    assert (host.root.directory / "etcd/member").exists()


@pytest.mark.parametrize("emptied", [False, True])
def test_a_swap_whose_old_member_is_gone_is_not_taken_back(emptied: bool, host: Host) -> None:
    """Else the new member is taken out and nothing put in: an empty cluster."""
    root = host.root.directory
    (root / "etcd/member").mkdir(parents=True)
    (root / "etcd/.x/new/member").mkdir(parents=True)
    step = SwapDataDir("/etcd", "/etcd/.x/new", "/etcd/.x/old", emptied)
    step.foresee(host, Ahead(), complete=False)
    step.apply(host)
    (root / "etcd/member").mkdir(exist_ok=True)
    step.foresee(host, Ahead(), complete=True)
    shutil.rmtree(root / "etcd/.x/old")
    with pytest.raises(Refused, match=r"/etcd/[.]x/old/member is gone"):
        step.foresee(host, Ahead(), complete=True)
    if not emptied:
        with pytest.raises(Refused, match=r"/etcd/[.]x/old/member is gone"):
            step.revert(host)
    assert (root / "etcd/member").exists()


def test_a_swap_where_there_was_no_member_needs_none_to_be_taken_back(host: Host) -> None:
    root = host.root.directory
    (root / "etcd/.x/new/member").mkdir(parents=True)
    step = SwapDataDir("/etcd", "/etcd/.x/new", "/etcd/.x/old")
    step.apply(host)
    step.foresee(host, Ahead(), complete=True)
    step.revert(host)
    assert not (root / "etcd/member").exists()
    assert (root / "etcd/.x/new/member").exists()
