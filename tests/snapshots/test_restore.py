from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from drtool.core.errors import DrtoolError, Refused, Unsound, UsageError
from snapshots import figures, mvcc, versions
from snapshots.cluster import read as read_cluster
from snapshots.fresh_datadir import fresh
from snapshots.hashkv import hashkv
from snapshots.membership import NewCluster, NewMember, new_cluster, parse_initial_cluster
from snapshots.mvcc import Revision
from snapshots.restore import Restoration, Restored, restore
from tests.builders import etcd_db
from tests.etcd_server import EtcdServer, find_etcd, free_port, servers
from tests.snapshots import real

THREE = "a=http://127.0.0.1:1001,b=http://127.0.0.1:1002,c=http://127.0.0.1:1003"
ONE = new_cluster([NewMember("m1", ("http://127.0.0.1:2380",))], "tok")
PLAIN = Restoration(ONE, "m1", bump=0)
WAL = "member/wal/0000000000000000-0000000000000000.wal"
ALARM = b"\x08\x05\x10\x01"
SERVERS = dict(servers())


def made(path: Path, **buckets: dict[bytes, bytes]) -> Path:
    keys = etcd_db.key_bucket([(2, b"a", b"1"), (3, b"b", b"2"), (4, b"a", None)])
    meta = {b"consistent_index": (50).to_bytes(8), b"term": (3).to_bytes(8)}
    named = {name.encode(): pairs for name, pairs in buckets.items()}
    path.write_bytes(etcd_db.snapshot({b"key": keys, b"meta": meta} | named))
    return path


def held(directory: Path) -> Path:
    return directory / "member" / "snap" / "db"


@pytest.mark.parametrize("cluster", [THREE, "a=http://127.0.0.1:1001"])
def test_it_is_what_etcdutl_makes(cluster: str, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.db"
    snapshot.write_bytes(real.data("etcd-3.5"))
    options = ["--name", "a", "--initial-cluster", cluster, "--initial-cluster-token", "tok"]
    program = [str(find_etcd("etcdutl")), "snapshot", "restore", str(snapshot), *options]
    advertised = ["--initial-advertise-peer-urls", "http://127.0.0.1:1001", "--data-dir", str(tmp_path / "theirs")]
    subprocess.run([*program, *advertised], check=True, capture_output=True)
    wanted = Restoration(new_cluster(parse_initial_cluster(cluster), "tok"), "a", bump=0)
    restored = restore(snapshot, tmp_path / "ours", wanted)
    assert status_hash(tmp_path / "ours") == status_hash(tmp_path / "theirs")
    for name in (
        WAL,
        *(str(path.relative_to(tmp_path / "theirs")) for path in tmp_path.glob("theirs/member/snap/*.snap")),
    ):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    assert restored.hashed


def status_hash(directory: Path) -> tuple[int, int]:
    found = figures.read(held(directory))
    assert found.structure.sound
    assert found.figures is not None
    return found.figures.hash, found.figures.total_key


@pytest.fixture(params=[(name, line) for name in real.NAMES for line in ("3.5", "3.6", "3.7")], ids="-on-".join)
def pairing(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str, Path]:
    """(snapshot, server line, server) for each real snapshot under each server at hand."""
    name, line = request.param
    if line not in SERVERS:
        pytest.skip(f"no etcd {line} here: name one in DRTOOL_TEST_ETCD_{line.replace('.', '')}")
    path = tmp_path / "snapshot.db"
    path.write_bytes(real.data(name))
    return path, line, SERVERS[line]


@pytest.mark.slow
@pytest.mark.parametrize("bump", [0, 1_000_000])
def test_real_servers_boot_on_it_and_serve_every_key(
    pairing: tuple[Path, str, Path], bump: int, tmp_path: Path
) -> None:
    snapshot, line, program = pairing
    with mvcc.opened(snapshot) as keys:
        want = {kv.key: (kv.value, *kv[1:4], kv.lease) for kv in keys.index().prefix()}
        last, leases = keys.last().main, read_cluster(keys).leases
        hashed = hashkv(keys)
    port = free_port()
    cluster = new_cluster([NewMember("m1", (f"http://127.0.0.1:{port}",))], "tok")
    wanted = Restoration(cluster, "m1", bump=bump, target=versions.parse(line) if line == "3.6" else None)
    restored = restore(snapshot, tmp_path / "m1.etcd", wanted)
    assert versions.parse(line) in restored.boots
    with EtcdServer(program, tmp_path, peer_port=port, env={"ETCD_VERIFY": "all"}) as server:
        assert server.keys() == {key: (kv[0], kv[1], kv[2], kv[3], kv[4]) for key, kv in want.items()}
        assert len(server.call("lease/leases", {}).get("leases", [])) == leases
        if not bump and line != "3.5":
            assert server.hashkv()[:2] == (hashed.hash, hashed.compact_revision)
        if bump:
            with pytest.raises(RuntimeError, match="compacted"):
                server.call("kv/range", {"key": "AA==", "revision": str(last)})
        server.put(b"after", b"restore")
        assert server.keys()[b"after"][2] == last + bump + 1


@pytest.mark.slow
def test_three_members_of_one_restore_form_a_cluster(tmp_path: Path) -> None:
    snapshot = made(tmp_path / "snapshot.db")
    ports = {name: free_port() for name in "abc"}
    text = ",".join(f"{name}=http://127.0.0.1:{port}" for name, port in ports.items())
    cluster = new_cluster(parse_initial_cluster(text), "tok")
    members = []
    for name, port in ports.items():
        restore(snapshot, tmp_path / f"{name}.etcd", Restoration(cluster, name))
        members.append(EtcdServer(find_etcd(), tmp_path, name=name, peer_port=port, cluster=text))
    assert len({held(tmp_path / f"{name}.etcd").read_bytes() for name in ports}) == 1
    try:
        for member in members:
            member.start()
        for member in members:
            member.wait()
        members[0].put(b"k", b"v")
        assert all(member.keys()[b"k"][0] == b"v" for member in members)
    finally:
        for member in members:
            member.kill()


def test_modes_are_those_that_etcd_wants(tmp_path: Path) -> None:
    restore(made(tmp_path / "s.db"), tmp_path / "new", PLAIN)
    for path in (tmp_path / "new", *(tmp_path / "new").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert (tmp_path / "new" / WAL).stat().st_size == 64_000_000


def test_a_stream_makes_the_same_db_as_a_file(tmp_path: Path) -> None:
    snapshot = made(tmp_path / "s.db")
    restore(snapshot, tmp_path / "file", PLAIN)
    data = snapshot.read_bytes()
    restore((data[at : at + 999] for at in range(0, len(data), 999)), tmp_path / "stream", PLAIN)
    assert held(tmp_path / "file").read_bytes() == held(tmp_path / "stream").read_bytes()


def failing(data: bytes) -> Iterator[bytes]:
    yield data
    raise Unsound("the store broke off")


def nothing_left(tmp_path: Path) -> bool:
    return sorted(path.name for path in tmp_path.iterdir()) == ["s.db"]


def test_a_stream_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    snapshot = made(tmp_path / "s.db")
    with pytest.raises(Unsound, match="broke off"):
        restore(failing(snapshot.read_bytes()[:9000]), tmp_path / "new", PLAIN)
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("as_stream", [False, True])
def test_a_wrong_hash_and_no_hash_are_refused(tmp_path: Path, as_stream: bool) -> None:
    snapshot = made(tmp_path / "s.db")
    data = bytearray(snapshot.read_bytes())
    data[-40_000 % len(data)] ^= 1
    for content, error in ((bytes(data), Unsound), (bytes(data[:-32]), Refused)):
        snapshot.write_bytes(content)
        with pytest.raises(error, match="hash"):
            restore([content] if as_stream else snapshot, tmp_path / "new", PLAIN)
        assert nothing_left(tmp_path)


def test_without_a_hash_a_sound_db_is_taken_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    snapshot = made(tmp_path / "s.db")
    data = bytearray(snapshot.read_bytes()[:-32])
    snapshot.write_bytes(data)
    loose = Restoration(ONE, "m1", bump=0, check_hash=False)
    assert not restore(snapshot, tmp_path / "new", loose).hashed
    root = figures.read(snapshot)
    assert root.structure.sound
    data[2 * 4096 : 3 * 4096], data[3 * 4096 : 4 * 4096] = data[3 * 4096 : 4 * 4096], data[2 * 4096 : 3 * 4096]
    snapshot.write_bytes(data)
    with pytest.raises(Unsound, match="page 3"):
        restore(snapshot, tmp_path / "other", loose)
    assert not (tmp_path / "other").exists()


def test_a_directory_that_holds_anything_is_never_touched(tmp_path: Path) -> None:
    snapshot = made(tmp_path / "s.db")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").write_text("x")
    with pytest.raises(Refused, match="not empty: it holds precious"):
        restore(snapshot, tmp_path / "data", PLAIN)
    with pytest.raises(Refused, match="not a directory"):
        restore(snapshot, snapshot, PLAIN)
    with pytest.raises(Refused, match="no such directory"):
        restore(snapshot, tmp_path / "no" / "parent", PLAIN)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["precious"]


def test_what_a_killed_run_left_is_removed_and_that_of_another_run_is_not(tmp_path: Path) -> None:
    """It holds the cluster's Secrets, and each retry would add one."""
    left, others = tmp_path / ".etcd.0123456789ab.part", tmp_path / ".other.0123456789ab.part"
    for place in (left, others):
        (place / "member").mkdir(parents=True)
    with suppress(KeyError), fresh(tmp_path / "etcd") as first:
        assert not left.exists()
        with fresh(tmp_path / "etcd"):
            assert first.exists()
        raise KeyError
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.0123456789ab.part", "etcd"]


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    restore(made(tmp_path / "s.db"), tmp_path / "data", PLAIN)
    assert held(tmp_path / "data").is_file()


def restored(tmp_path: Path, how: Restoration, **buckets: dict[bytes, bytes]) -> Restored:
    return restore(made(tmp_path / "s.db", **buckets), tmp_path / "new", how)


def test_a_nospace_alarm_is_said_and_left_out_on_request(tmp_path: Path) -> None:
    assert restored(tmp_path, PLAIN, alarm={ALARM: b""}).alarms == ("NOSPACE",)
    cleared = Restoration(ONE, "m1", bump=0, clear_alarms=True)
    assert restore(tmp_path / "s.db", tmp_path / "cleared", cleared).alarms == ()
    with mvcc.opened(held(tmp_path / "cleared")) as keys:
        assert read_cluster(keys).alarms == ()


def test_auth_is_said_and_turned_off_on_request(tmp_path: Path) -> None:
    assert restored(tmp_path, PLAIN, auth={b"authEnabled": b"\x01"}).auth
    off = Restoration(ONE, "m1", bump=0, disable_auth=True)
    assert not restore(tmp_path / "s.db", tmp_path / "off", off).auth
    with mvcc.opened(held(tmp_path / "off")) as keys:
        assert not read_cluster(keys).auth


def test_the_bump_counts_from_the_newest_revision_or_compaction(tmp_path: Path) -> None:
    meta = {b"finishedCompactRev": mvcc.encode_revision(Revision(90))}
    result = restored(tmp_path, Restoration(ONE, "m1", bump=10), meta=meta)
    assert (result.revision, result.bumped) == (90, 100)
    with mvcc.opened(held(tmp_path / "new")) as keys:
        assert keys.last().main == 100
        assert keys.compacted() == 100


def test_a_newer_line_than_known_is_refused_and_an_older_target_adapted(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"used by etcd 3\.9; drtool knows 3\.4 to 3\.7"):
        restored(tmp_path, PLAIN, meta={b"storageVersion": b"3.9.0"})
    assert nothing_left(tmp_path)
    newest = {b"storageVersion": b"3.7.0", b"term": bytes(8), b"confState": b'{"voters":[1]}'}
    assert [str(line) for line in restored(tmp_path, PLAIN, meta=newest).boots] == ["3.4", "3.5", "3.7"]
    for line in versions.LINES:
        how = Restoration(ONE, "m1", target=line)
        result = restore(tmp_path / "s.db", tmp_path / str(line), how)
        assert line in result.boots
        with mvcc.opened(held(tmp_path / str(line))) as keys:
            meta = keys.meta()
        assert meta.get(b"storageVersion") == (f"{line}.0".encode() if line >= (3, 6) else None)
        assert (b"term" in meta) == (line != (3, 4))


def test_a_db_that_a_server_has_open_is_refused(tmp_path: Path) -> None:
    with EtcdServer(find_etcd(), tmp_path) as server, pytest.raises(Refused, match="open in a running etcd"):
        restore(held(server.data_dir), tmp_path / "new", Restoration(ONE, "m1", check_hash=False))
    assert not (tmp_path / "new").exists()


def test_what_is_no_etcd_db_is_told(tmp_path: Path) -> None:
    from snapshots import amend, bolt

    base = bolt.Meta(4096, 2, bolt.NO_FREELIST, 3, 1)
    root = bolt.HEADER.pack(2, bolt.LEAF, 0, 0).ljust(4096, b"\0")
    metas = amend.meta_page(base._replace(txid=0), 0) + amend.meta_page(base, 1)
    (tmp_path / "s.db").write_bytes(etcd_db.sealed(metas + root))
    with pytest.raises(Unsound, match="not etcd's"):
        restore(tmp_path / "s.db", tmp_path / "new", PLAIN)
    assert nothing_left(tmp_path)


def test_an_unknown_member_and_a_negative_bump_are_usage(tmp_path: Path) -> None:
    cluster: NewCluster = ONE
    with pytest.raises(UsageError, match="no member 'x'"):
        restored(tmp_path, Restoration(cluster, "x"))
    with pytest.raises(UsageError, match="revisions only grow"):
        restored(tmp_path, Restoration(cluster, "m1", bump=-1))


@pytest.mark.parametrize("bump", [1 << 62, (1 << 63) - 1, 10**20])
def test_a_bump_beyond_what_etcd_counts_is_usage(bump: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot count so far"):
        restored(tmp_path, Restoration(ONE, "m1", bump=bump))
    assert not (tmp_path / "new").exists()


def test_a_full_disk_is_told_before_anything_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((4096, 4096, 10, 1, 1, 1, 1, 1, 0, 255)))
    with pytest.raises(DrtoolError, match="free"):
        restored(tmp_path, PLAIN)
    assert nothing_left(tmp_path)
