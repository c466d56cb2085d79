"""Quorum loss with real members: three, two killed, one write on the survivor that no majority has."""

from __future__ import annotations

import http.client
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from drtool.cli.survivors import as_table
from drtool.core.errors import Unsound
from snapshots import mvcc, survivors
from snapshots.membership import NewMember, new_cluster
from snapshots.restore import Restoration, restore
from snapshots.survivors import Survivor
from tests.etcd_server import EtcdServer, encode, find_etcd, free_port


def survivor(name: str, term: int, index: int, revision: int, damage: str = "", live: bool = False) -> Survivor:
    return Survivor(Path(name), damage=damage, live=live, term=term, index=index, revision=revision)


def test_the_highest_term_wins_over_the_highest_index() -> None:
    verdict = survivors.judge([survivor("a", 2, 90, 50), survivor("b", 3, 80, 45), survivor("c", 3, 70, 40)])
    assert verdict.best == survivor("b", 3, 80, 45)
    assert [(str(loss.directory), loss.entries, loss.revisions) for loss in verdict.losses] == [
        ("a", 0, 0), ("c", 10, 5),
    ]  # fmt: skip


def test_what_is_damaged_or_running_is_not_rebuilt_from() -> None:
    verdict = survivors.judge([survivor("a", 9, 9, 9, damage="page 3"), survivor("b", 9, 9, 9, live=True)])
    assert verdict.best is None
    assert verdict.losses == ()


def test_a_sound_db_that_is_newer_than_the_best_is_told() -> None:
    best = replace(survivor("a", 2, 90, 50), member_id=1, members=3)
    cut = replace(survivor("b", 2, 20, 10, damage="the log is corrupt"), member_id=2, db_revision=60, sound_db=True)
    for other, newer in ((cut, cut), (replace(cut, db_revision=50), None), (replace(cut, sound_db=False), None)):
        verdict = survivors.judge([best, other, best, survivor("c", 0, 0, 0, damage="no such directory")])
        assert (verdict.best, verdict.newer, verdict.readable) == (best, newer, 1)
        text = as_table(verdict, ())
        assert ("NOT the newest data: the log of b is damaged, but its db alone is at revision 60" in text) == (
            newer is cut
        )
        assert "the cluster had 3 members, 1 can be read here" in text


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The directories of a, b and c; c was killed first, then b, and a has one write more that it never committed."""
    directory = tmp_path_factory.mktemp("quorum")
    ports = {name: free_port() for name in "abc"}
    cluster = ",".join(f"{name}=http://127.0.0.1:{port}" for name, port in ports.items())
    servers = {
        name: EtcdServer(find_etcd(), directory, name=name, peer_port=port, cluster=cluster)
        for name, port in ports.items()
    }
    try:
        for server in servers.values():
            server.start()
        for server in servers.values():
            server.wait()
        for number in range(20):
            servers["a"].put(b"k%02d" % number, b"v")
        servers["c"].kill()
        for number in range(20, 30):
            put_when_led(servers["a"], b"k%02d" % number)
        servers["b"].kill()
        one_write_without_majority(servers["a"])
    finally:
        for server in servers.values():
            server.kill()
    return {name: directory / f"{name}.etcd" for name in ports}


def put_when_led(server: EtcdServer, key: bytes) -> None:
    """The leader may have been the member just killed."""
    for _ in range(20):
        try:
            server.put(key, b"v")
        except (RuntimeError, OSError):
            continue
        return
    raise AssertionError("no leader again")


def one_write_without_majority(server: EtcdServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.client_port, timeout=1)
    body = f'{{"key": "{encode(b"last")}", "value": "{encode(b"v")}"}}'
    try:
        connection.request("POST", "/v3/kv/put", body)
        connection.getresponse().read()
    except TimeoutError:
        pass
    finally:
        connection.close()


@pytest.mark.slow
def test_the_newest_member_is_found_and_rebuilt_from(members: dict[str, Path], tmp_path: Path) -> None:
    verdict = survivors.compare(list(members.values()))
    assert verdict.best is not None
    assert verdict.best.name in ("a", "b")
    assert verdict.members == 3
    assert {one.members for one in verdict.survivors} <= {0, 3}  # c may be killed before its db has them
    lost = {loss.directory: loss for loss in verdict.losses}
    assert lost[members["c"]].entries >= 10
    assert lost[members["c"]].revisions >= 10
    port = free_port()
    cluster = new_cluster([NewMember("a", (f"http://127.0.0.1:{port}",))], "after")
    restored = restore(verdict.best.directory, tmp_path / "a.etcd", Restoration(cluster, "a", bump=1000))
    with EtcdServer(find_etcd(), tmp_path, name="a", peer_port=port) as server:
        keys = server.keys()
        assert {b"k%02d" % number for number in range(30)} <= set(keys)
        server.put(b"new", b"v")
        assert server.keys()[b"new"][2] == restored.bumped + 1
        assert len(server.call("cluster/member/list", {})["members"]) == 1


@pytest.mark.slow
def test_a_copy_that_is_damaged_does_not_hide_the_others(members: dict[str, Path], tmp_path: Path) -> None:
    copy = Path(shutil.copytree(members["a"], tmp_path / "a"))
    (copy / "member" / "snap" / "db").write_bytes(b"not a db" * 1000)
    verdict = survivors.compare([copy, members["c"]])
    assert verdict.best is not None
    assert verdict.best.directory == members["c"]
    assert "meta page" in verdict.survivors[0].damage


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fifo", "directory", "no directory"])
def test_a_log_that_cannot_be_read_hides_no_other_member(kind: str, members: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(members["b"], tmp_path / "b")
    log = tmp_path / "b/member/wal"
    for segment in log.iterdir():
        segment.unlink()
    if kind == "fifo":
        os.mkfifo(log / f"{0:016x}-{0:016x}.wal")
    elif kind == "directory":
        (log / f"{0:016x}-{0:016x}.wal").mkdir()
    else:
        log.rmdir()
        log.touch()
    verdict = survivors.compare([tmp_path / "b", members["a"]])
    assert verdict.best is not None
    assert verdict.best.directory == members["a"]
    assert "wal" in verdict.survivors[0].damage


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 4096])
def test_a_log_without_a_record_is_damage(size: int, members: dict[str, Path], tmp_path: Path) -> None:
    """As a file system may leave it after a power cut."""
    shutil.copytree(members["b"], tmp_path / "b")
    for segment in (tmp_path / "b/member/wal").glob("*.wal"):
        segment.write_bytes(bytes(size))
    verdict = survivors.compare([tmp_path / "b"])
    assert verdict.best is None
    assert "the log holds no record" in verdict.survivors[0].damage
    assert verdict.survivors[0].sound_db
    cluster = new_cluster([NewMember("b", ("http://127.0.0.1:2380",))])
    with pytest.raises(Unsound, match="the log holds no record"):
        restore(tmp_path / "b", tmp_path / "b.etcd", Restoration(cluster, "b"))
    assert restore(tmp_path / "b", tmp_path / "b.etcd", Restoration(cluster, "b", check_hash=False)).replayed == 0


def test_members_of_different_clusters_are_told(members: dict[str, Path], tmp_path: Path) -> None:
    with EtcdServer(find_etcd(), tmp_path) as other:
        other.put(b"k", b"v")
    with pytest.raises(Unsound, match="members of different clusters"):
        survivors.compare([members["a"], other.data_dir])


@pytest.mark.slow
def test_committed_only_leaves_out_what_no_majority_is_known_to_have(members: dict[str, Path], tmp_path: Path) -> None:
    port = free_port()
    cluster = new_cluster([NewMember("a", (f"http://127.0.0.1:{port}",))])
    for committed_only in (False, True):
        how = Restoration(cluster, "a", bump=0, committed_only=committed_only)
        restore(members["a"], tmp_path / str(committed_only), how)
        with mvcc.opened(tmp_path / str(committed_only) / "member" / "snap" / "db") as keys:
            assert b"last" not in keys.index() or not committed_only
