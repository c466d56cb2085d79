"""Facts of a member's data: from real etcd, from dbs made to order, from any bytes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.host.root import Root
from snapshots import scratch, v2store, walcheck, wire
from snapshots.contents import Contents
from snapshots.facts import Database, DataDirectory, compared, database, look
from tests.builders.etcd_db import db, key_bucket, snapshot

DATA = "/var/lib/etcd"
SECRET = b"k8s:enc:aescbc:v1:key1:" + b"x" * 32
OBJECTS = key_bucket(
    [
        (2, b"/registry/secrets/a/one", SECRET),
        (3, b"/registry/secrets/a/two", b"k8s\0plain"),
        (4, b"/registry/configmaps/a/text", b"k8s\0mentions k8s:enc: only"),
        (5, b"/registry/minions/cp-1", b"k8s\0node"),
        (6, b"/registry/secrets/a/two", None),
        (7, b"/registry/minions/cp-1", b"k8s\0node again"),
        (8, b"/registry/configmaps/kube-system/kubeadm-config", b"k8s\0controlPlaneEndpoint: 192.0.2.100:6443\n"),
    ]
)
META = {b"consistent_index": (9).to_bytes(8), b"term": (2).to_bytes(8)}


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A root whose /var/lib/etcd a real etcd has written, and left."""
    root = tmp_path_factory.mktemp("member")
    place = root / DATA.lstrip("/")
    place.parent.mkdir(parents=True)
    with scratch.running(place) as etcd:
        del etcd
    return root


def test_a_real_member(member: Path) -> None:
    facts = look(Root(member), DATA)
    cluster = facts.database.cluster
    assert facts.member
    assert [one.name for one in cluster.members] == ["default"]
    assert facts.log.member_id == cluster.members[0].id
    assert facts.log.cluster_id
    assert facts.log.fault == ""
    assert facts.log.last >= cluster.consistent_index > 0
    assert facts.database.checked
    assert facts.database.damage == ""


def test_a_running_member_is_busy(tmp_path: Path) -> None:
    place = tmp_path / DATA.lstrip("/")
    place.parent.mkdir(parents=True)
    with scratch.running(place):
        assert look(Root(tmp_path), DATA).database.busy


def written(tmp_path: Path, data: bytes) -> Path:
    place = tmp_path / "db"
    place.write_bytes(data)
    return place


def test_contents(tmp_path: Path) -> None:
    found = database(written(tmp_path, db({b"key": OBJECTS, b"meta": META})))
    contents = found.contents
    assert (contents.revisions, contents.keys, contents.live) == (7, 5, 4)
    assert contents.nodes == ("cp-1",)
    assert b"controlPlaneEndpoint: 192.0.2.100:6443" in contents.kubeadm
    stored = {(one.resource, one.provider, one.name): one.count for one in contents.stored}
    assert stored == {
        ("secrets", "aescbc", "key1"): 1,
        ("configmaps", "", ""): 2,
        ("nodes", "", ""): 1,
    }
    assert found.revision == 8
    assert found.cluster.consistent_index == 9


def test_of_a_large_db_the_newest_part_is_read_and_said_so(tmp_path: Path) -> None:
    changes = [(i, b"/registry/leases/a/%d" % i, b"k8s\0" + b"v" * 2000) for i in range(2, 6000)]
    found = database(written(tmp_path, db({b"key": key_bucket(changes), b"meta": META})), deep=1 << 20)
    assert not found.checked
    assert found.free is None
    assert not found.contents.whole
    assert 0 < found.contents.revisions < 5998
    assert found.revision == 5999


def test_a_snapshot_that_was_changed(tmp_path: Path) -> None:
    whole = snapshot({b"key": OBJECTS, b"meta": META})
    assert database(written(tmp_path, whole), trailer=True).trailer is True
    at = whole.index(b"node again")
    changed = whole[:at] + b"N" + whole[at + 1 :]
    assert database(written(tmp_path, changed), trailer=True).trailer is False


def test_damage_is_told_and_evidence_missing(tmp_path: Path) -> None:
    found = database(written(tmp_path, bytes(8192)))
    assert "neither of the two meta pages" in found.damage
    with pytest.raises(EvidenceMissing):
        _ = found.cluster
    with pytest.raises(EvidenceMissing):
        _ = found.contents


def test_damage_in_a_busy_db_proves_nothing(tmp_path: Path) -> None:
    place = written(tmp_path, bytes(8192))
    descriptor = os.open(place, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert database(place).busy
    finally:
        os.close(descriptor)
    assert not database(place).busy


def test_nothing_there(tmp_path: Path) -> None:
    facts = look(Root(tmp_path), DATA)
    assert not facts.present
    with pytest.raises(EvidenceMissing):
        _ = facts.database
    (tmp_path / DATA.lstrip("/")).mkdir(parents=True)
    with pytest.raises(NotApplicable):
        _ = look(Root(tmp_path), DATA).log


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    outside = written(tmp_path, db({b"key": OBJECTS, b"meta": META}))
    place = tmp_path / "root" / DATA.lstrip("/") / "member" / "snap"
    place.mkdir(parents=True)
    (place / "db").symlink_to(outside)
    with pytest.raises(EvidenceMissing):
        _ = look(Root(tmp_path / "root"), DATA).database


def laid(root: Path, changes: list[tuple[int, bytes, bytes | None]]) -> DataDirectory:
    place = root / DATA.lstrip("/") / "member" / "snap"
    place.mkdir(parents=True)
    (place / "db").write_bytes(db({b"key": key_bucket(changes), b"meta": META}))
    return look(Root(root), DATA)


def test_members_are_compared_at_the_newest_revision_that_all_have(tmp_path: Path) -> None:
    same = [(2, b"a", b"1"), (3, b"b", b"2")]
    roots = [Root(tmp_path / name) for name in ("1", "2", "3")]
    stored = [
        laid(roots[0].directory, [*same, (4, b"c", b"3")]),
        laid(roots[1].directory, list(same)),
        laid(roots[2].directory, [(2, b"a", b"1"), (3, b"b", b"other")]),
    ]
    first, second, third = (one.digest for one in compared(roots, stored) if one)
    assert first == second
    assert first is not None
    assert third is not None
    assert first[0] == third[0] == 3
    assert first[1] != third[1]
    assert compared(roots[:1], stored[:1]) == tuple(stored[:1])


@given(st.binary(max_size=3000))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_as_a_db(tmp_path: Path, data: bytes) -> None:
    assert isinstance(database(written(tmp_path, data)), Database)


@given(st.integers(0, 24_000), st.binary(min_size=1, max_size=40))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_db_with_changed_bytes(tmp_path: Path, at: int, change: bytes) -> None:
    whole = bytearray(db({b"key": OBJECTS, b"meta": META, b"members": {b"1": b'{"id":1,"peerURLs":[]}'}}))
    at %= len(whole)
    whole[at : at + len(change)] = change
    found = database(written(tmp_path, bytes(whole)))
    try:
        assert isinstance(found.contents, Contents)
    except EvidenceMissing:
        assert found.damage


@given(st.binary(max_size=3000))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_as_a_log(tmp_path: Path, data: bytes) -> None:
    (tmp_path / f"{0:016x}-{0:016x}.wal").write_bytes(data)
    assert walcheck.look(tmp_path).segments


def test_a_segment_that_is_missing(tmp_path: Path) -> None:
    for number in (0, 1, 3):
        (tmp_path / f"{number:016x}-{number * 100:016x}.wal").write_bytes(b"")
    facts = walcheck.look(tmp_path)
    assert facts.gap == f"{2:016x}"
    assert walcheck.look(tmp_path / ".." / tmp_path.name).first == 0


@given(st.binary(max_size=2000))
def test_any_bytes_as_a_snap_file(data: bytes) -> None:
    assert isinstance(v2store.foreign(data), tuple)


def snap(root: str) -> bytes:
    inner = wire.field(1, b'{"Root":' + root.encode() + b"}")
    return wire.field(1, 0) + wire.field(2, inner)


@pytest.mark.parametrize(
    ("children", "keys"),
    [
        ('{"0":{"Path":"/0","Children":{"members":{"Path":"/0/members"}}},"1":{"Path":"/1","Children":{}}}', ()),
        ('{"1":{"Path":"/1","Children":{"lock":{"Path":"/1/lock","Value":"x","Children":null}}}}', ("/lock",)),
        ('{"0":null}', ()),
    ],
)
def test_keys_of_the_v2_api(children: str, keys: tuple[str, ...]) -> None:
    assert v2store.foreign(snap('{"Path":"/","Children":' + children + "}")) == keys
