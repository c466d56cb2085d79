from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from drtool.cli import group
from drtool.core.errors import DrtoolError, NotFound, Unsound, UsageError
from snapshots.mvcc import Revision, encode_revision
from tests.builders import etcd_db
from tests.etcd_server import EtcdServer, find_etcd

CHANGES = [(number + 2, b"/registry/pods/ns/%03d" % (number % 40), b"v" * 200) for number in range(90)]


def made(path: Path, **buckets: dict[bytes, bytes]) -> Path:
    named = {name.encode(): pairs for name, pairs in buckets.items()}
    path.write_bytes(etcd_db.snapshot({b"key": etcd_db.key_bucket(CHANGES)} | named))
    return path


def drtool(*arguments: object) -> Result:
    """What the program would print; an error that has an exit status of its own is raised."""
    result = CliRunner().invoke(group, [str(argument) for argument in arguments], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def test_status_as_json_has_etcdutls_figures_and_more(tmp_path: Path) -> None:
    members = {b"1f": b'{"id":31,"peerURLs":["http://127.0.0.1:2380"],"isLearner":true,"name":"m"}'}
    path = made(tmp_path / "s.db", members=members, alarm={b"\x08\x1f\x10\x01": b""})
    result = drtool("status", path, "-o", "json")
    data = json.loads(result.stdout)
    assert next(iter(data)) == "schemaVersion"
    assert (data["revision"], data["totalKey"], data["totalKeyBefore36"]) == (91, 40, 92)
    assert {"hash", "totalSize", "version"} <= data.keys()
    assert (data["structure"], data["trailingHash"], data["faults"]) == ("sound", "holds", [])
    assert data["members"][0] == {
        "id": "1f", "name": "m", "peerURLs": ["http://127.0.0.1:2380"], "clientURLs": [], "learner": True,
    }  # fmt: skip
    assert data["alarms"] == [{"member": "1f", "alarm": "NOSPACE"}]
    assert data["prefixes"] == [
        {"prefix": "/registry/pods/", "keys": 40, "revisions": 90, "size": data["prefixes"][0]["size"]}
    ]
    assert result.return_value == 0
    assert yaml.safe_load(drtool("status", path, "-o", "yaml").stdout) == data


def test_status_as_a_table_says_what_matters(tmp_path: Path) -> None:
    path = made(tmp_path / "s.db", alarm={b"\x08\x1f\x10\x01": b""}, auth={b"authEnabled": b"\x01"})
    text = drtool("status", path).stdout
    for said in ("structure", "sound", "holds", "ALARM NOSPACE", "auth", "LARGEST PREFIXES", "MOST REWRITTEN KEYS"):
        assert said in text


def test_damage_and_a_wrong_hash_end_with_4(tmp_path: Path) -> None:
    path = made(tmp_path / "s.db")
    data = bytearray(path.read_bytes())
    data[data.index(b"vvvv")] ^= 1
    path.write_bytes(data)
    result = drtool("status", path)
    assert result.return_value == 4
    assert "WRONG" in result.stdout
    data[3 * 4096] ^= 0xFF
    path.write_bytes(data)
    result = drtool("status", path, "-o", "json")
    assert json.loads(result.stdout)["structure"] == "damaged"
    assert [fault["page"] for fault in json.loads(result.stdout)["faults"]] == [3]
    assert "PAGE" in drtool("status", path).stdout


def test_what_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        drtool("status", tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(Unsound, match="neither of the two meta pages"):
        drtool("status", tmp_path / "text")


def test_a_running_servers_directory_is_told_as_such(tmp_path: Path) -> None:
    with EtcdServer(find_etcd(), tmp_path) as server:
        data = json.loads(drtool("status", server.data_dir, "-o", "json").stdout)
    assert data["openInEtcd"] is True
    assert data["trailingHash"] == "none"


def test_hashkv_reads_only_and_takes_a_revision(tmp_path: Path) -> None:
    path = made(tmp_path / "s.db")
    before = path.read_bytes()
    newest = json.loads(drtool("hashkv", path, "-o", "json").stdout)
    older = json.loads(drtool("hashkv", path, "--revision", 50, "-o", "json").stdout)
    assert newest["revision"] == 91
    assert older["revision"] == 50
    assert newest["hash"] != older["hash"]
    assert str(newest["hash"]) in drtool("hashkv", path).stdout
    assert path.read_bytes() == before
    with pytest.raises(UsageError, match="yet to come"):
        drtool("hashkv", path, "--revision", 92)


def test_survivors_says_which_to_rebuild_from(tmp_path: Path) -> None:
    with EtcdServer(find_etcd(), tmp_path) as server:
        server.put(b"k", b"v")
        server.kill()
    result = drtool("survivors", server.data_dir, "-o", "json")
    data = json.loads(result.stdout)
    assert data["best"] == str(server.data_dir)
    assert any("drtool restore" in step for step in data["plan"])
    text = drtool("survivors", server.data_dir, tmp_path / "none").stdout
    assert "rebuild from this one" in text
    assert "no member/snap/db" in text
    nothing = drtool("survivors", tmp_path / "none")
    assert nothing.return_value == 4
    assert "restore a backup" in nothing.stdout


def test_restore_to_a_directory(tmp_path: Path) -> None:
    path = made(tmp_path / "s.db", alarm={b"\x08\x1f\x10\x01": b""})
    result = drtool("restore", path, "--to", tmp_path / "new", "--initial-cluster-token", "t", "-o", "json")
    data = json.loads(result.stdout)
    assert (data["revision"], data["newRevision"]) == (91, 1_000_000_091)
    assert "NOSPACE" in result.stderr
    with pytest.raises(DrtoolError, match="not empty"):
        drtool("restore", path, "--to", tmp_path / "new")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--initial-cluster", "a=http://127.0.0.1:1,b=http://127.0.0.1:2"), "same token"),
        (("--initial-cluster", "a=http://127.0.0.1:1,b=http://127.0.0.1:2", "--initial-cluster-token", "t"), "--name"),
        (("--target-version", "2.3"), "no line that drtool restores for"),
        (
            ("--initial-cluster", "a=http://127.0.0.1:1", "--initial-advertise-peer-urls", "http://127.0.0.1:2"),
            "is not",
        ),
    ],
)
def test_a_cluster_that_makes_no_sense_is_usage(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    path = made(tmp_path / "s.db")
    with pytest.raises(UsageError) as told:
        drtool("restore", path, "--to", tmp_path / "new", *arguments)
    assert message in str(told.value)
    assert not (tmp_path / "new").exists()


def test_a_compacted_revision_is_told(tmp_path: Path) -> None:
    path = made(tmp_path / "s.db", meta={b"finishedCompactRev": encode_revision(Revision(60))})
    with pytest.raises(UsageError, match="compacted"):
        drtool("hashkv", path, "--revision", 59)
