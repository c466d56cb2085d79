from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from drtool.commands import fetch
from drtool.commands.check import all_checks
from drtool.commands.verify import verify
from drtool.config import Config, Retention, Spool
from drtool.core.check import Check, run_one
from drtool.core.errors import CannotOpen, DrtoolError, Locked, Unsound
from drtool.core.events import Progress
from drtool.core.report import Status
from snapshots import lock, scratch
from snapshots.etcd import Etcd
from snapshots.scratch_s3 import Server
from snapshots.stores.directory import DirectoryStore
from snapshots.stores.store import StoreMissing
from tests.builders.live_node import LiveNode, live_node
from tests.builders.tree import Tree
from tests.commands.backing import IDENTITY, config_for, opened, run, s3_config
from tests.commands.test_prune import stored
from tests.fakes.fault_proxy import Choice, Fault, Request, at_random, fault_proxy


def listed(config: Config, server: Server | None = None) -> list[str]:
    return [one.id for one in opened(config, server).inventory().backups]


def leftovers(directory: Path) -> list[str]:
    return [place.name for place in directory.rglob("*.part")]


def test_a_backup_holds_the_db_and_the_node(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    result = run(config, node)
    record = result.record
    assert result.good
    with Etcd(node.access) as etcd:
        status = etcd.status()
        assert record.keys == etcd.count(b"\0", b"\0")
    assert (record.cluster_id, record.revision) == (f"{status.cluster_id:016x}", status.revision)
    assert record.keys_by_prefix == {"/registry/pods/": 2000, "/registry/secrets/": 2400}
    shelf = opened(config)
    backup = shelf.choose()
    snapshot = b"".join(fetch.db_pieces(shelf, backup))
    assert len(snapshot) == record.db.plain_size
    bundle = fetch.node_bundle(shelf, backup)
    assert bundle is not None
    for path in ("/etc/kubernetes/pki/sa.key", "/etc/kubernetes/manifests/etcd.yaml", "/var/lib/kubelet/config.yaml"):
        held = bundle.file(path)
        assert held is not None
        assert held.data == node.root.locate(path).read_bytes()
    assert verify(shelf, "latest").opened
    assert leftovers(tmp_path) == []


def test_a_good_backup_is_remembered_on_the_node(node: LiveNode, tmp_path: Path) -> None:
    result = run(config_for(tmp_path), node)
    told = json.loads((tmp_path / "last-backup.json").read_text())
    assert (told["id"], told["revision"]) == (result.record.id, result.record.revision)
    copy = Tree(tmp_path / "copy")
    copy.write("/etc/drtool/config.yaml", "store: {url: 'file:///backups'}\n")
    copy.write("/var/lib/drtool/last-backup.json", json.dumps(told))
    assert run_one(backup_missing(), copy.node(result.record.taken_at)).status is Status.PASSED
    assert run_one(backup_missing(), copy.node(result.record.taken_at + timedelta(hours=27))).status is Status.FAILED


def backup_missing() -> Check:
    return next(check for check in all_checks() if check.id == "etcd-backup-missing")


@pytest.mark.skipif(not (shutil.which("age") and shutil.which("zstd")), reason="no age and zstd programs here")
def test_the_plain_tools_turn_it_into_a_db_that_etcdutl_accepts(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    record = run(config, node).record
    sealed = tmp_path / "store" / record.path / record.db.name
    (tmp_path / "key").write_text(f"{IDENTITY}\n")
    for command in (
        ["age", "-d", "-i", str(tmp_path / "key"), "-o", str(tmp_path / "db.zst"), str(sealed)],
        ["zstd", "-q", "-d", str(tmp_path / "db.zst"), "-o", str(tmp_path / "db")],
        [
            str(scratch.binary("etcdutl")),
            "snapshot",
            "restore",
            str(tmp_path / "db"),
            "--data-dir",
            str(tmp_path / "r"),
        ],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with scratch.running(tmp_path / "r") as etcd, Etcd(node.access.at(etcd.client_url)) as client:
        assert client.count(b"\0", b"\0") == record.keys


def test_what_the_bundle_misses_makes_it_incomplete(tmp_path: Path) -> None:
    with live_node(tmp_path / "root") as node:
        node.root.locate("/etc/kubernetes/pki/sa.key").unlink()
        result = run(config_for(tmp_path), node)
    assert not result.good
    assert result.record.verified
    assert result.record.incomplete == ("/etc/kubernetes/pki/sa.key: No such file or directory",)


def test_a_wrong_key_and_a_wrong_signature_are_told_apart(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    run(config, node)
    other = tmp_path / "other.txt"
    from snapshots.seal import throwaway

    other.write_text(f"{throwaway()[0]}\n")
    with pytest.raises(CannotOpen, match="not sealed for any"):
        verify(opened(replace(config, identities=(str(other),))), "latest")
    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True, capture_output=True)
    believing = replace(config, signing=replace(config.signing, trusted=(str(key),)))
    assert listed(believing) == []
    with pytest.raises(CannotOpen, match="no signature"):
        opened(believing).choose(listed(config)[0])
    signing = replace(config, signing=replace(config.signing, key=str(key)))
    record = run(signing, node).record
    assert listed(believing) == [record.id]
    place = tmp_path / "store" / record.path / "record.json"
    place.write_bytes(place.read_bytes().replace(b'"keys": 4400', b'"keys": 4401'))
    with pytest.raises(CannotOpen, match="not signed by a trusted key"):
        opened(believing).choose(record.id)


def test_a_flipped_bit_in_the_store_is_found(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    record = run(config, node).record
    place = tmp_path / "store" / record.path / record.db.name
    with place.open("r+b") as file:
        file.seek(record.db.sealed_size // 2)
        byte = file.read(1)[0]
        file.seek(record.db.sealed_size // 2)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(Unsound):
        verify(opened(config), "latest")
    assert [one.good for one in opened(config).inventory().backups] == [False]


# ---- the store goes wrong

TRANSIENT = (Fault.ERROR, Fault.RESET, Fault.LOST, Fault.STALL, Fault.CUT, Fault.CORRUPT_UP)


@pytest.mark.parametrize("fault", TRANSIENT)
def test_a_fault_that_passes_loses_nothing(node: LiveNode, s3_server: Server, tmp_path: Path, fault: Fault) -> None:
    """The first request of each kind and object meets the fault, the next one works."""
    seen: set[tuple[str, str, bool]] = set()

    def once(request: Request) -> Fault:
        what = (request.method, request.key, request.of_part)
        if what in seen or (fault is Fault.STALL and not request.of_part):
            return Fault.NONE
        seen.add(what)
        return fault

    with fault_proxy(s3_server.endpoint, once) as proxy:
        config = config_for(tmp_path, s3_config(s3_server, proxy.endpoint))
        result = run(config, node, s3_server)
        assert proxy.met[fault] > 0
    direct = replace(config, store=replace(config.store, endpoint=s3_server.endpoint))
    assert result.good
    assert listed(direct, s3_server) == [result.record.id]
    assert verify(opened(direct, s3_server), "latest").opened


@pytest.mark.parametrize("seed", range(2))
def test_random_faults_never_give_a_false_success(node: LiveNode, s3_server: Server, tmp_path: Path, seed: int) -> None:
    faults = (*TRANSIENT[:3], Fault.CUT, Fault.CORRUPT_UP, Fault.CORRUPT_DOWN)
    with fault_proxy(s3_server.endpoint, at_random(seed, 0.15, faults)) as proxy:
        config = config_for(tmp_path, s3_config(s3_server, proxy.endpoint))
        direct = replace(config, store=replace(config.store, endpoint=s3_server.endpoint))
        results = []
        for _ in range(2):
            try:
                results.append(run(config, node, s3_server))
            except DrtoolError as failed:
                assert not isinstance(failed, Unsound)  # noqa: PT017 - a run may fail, but not blame etcd
        proxy.choose = lambda _: Fault.NONE
        results.append(run(config, node, s3_server))
    claimed = {result.record.id for result in results}
    assert set(listed(direct, s3_server)) == claimed
    for name in claimed:
        assert verify(opened(direct, s3_server), name).opened
    assert opened(direct, s3_server).inventory().orphans == ()


def only(choice: Fault, method: str, ending: str) -> Choice:
    def choose(request: Request) -> Fault:
        return choice if request.method == method and request.key.endswith(ending) else Fault.NONE

    return choose


@pytest.mark.parametrize(
    ("fault", "method"), [(Fault.CORRUPT_DOWN, "GET"), (Fault.TRAILER, "GET"), (Fault.TRAILER, "HEAD")]
)
def test_a_store_that_changes_bytes_gets_no_record(
    node: LiveNode, s3_server: Server, tmp_path: Path, fault: Fault, method: str
) -> None:
    def choose(request: Request) -> Fault:
        return fault if "/db.zst" in request.key and request.method in (method, "HEAD") else Fault.NONE

    with fault_proxy(s3_server.endpoint, choose) as proxy:
        config = config_for(tmp_path, s3_config(s3_server, proxy.endpoint))
        result = run(config, node, s3_server)
        assert result.spooled
        assert "not what was" in result.failure
        assert listed(config, s3_server) == []
        proxy.choose = lambda _: Fault.NONE
        second = run(config, node, s3_server)
    assert second.sent == (result.record.id,)
    assert second.good


def test_a_store_that_fails_the_probe_is_refused(node: LiveNode, s3_server: Server, tmp_path: Path) -> None:
    with fault_proxy(s3_server.endpoint, lambda _: Fault.TRAILER) as proxy:
        config = config_for(tmp_path, s3_config(s3_server, proxy.endpoint))
        result = run(config, node, s3_server)
    assert result.spooled
    assert "did not pass the probe" in result.failure
    assert "checksum trailer" in result.failure


def test_what_cannot_be_read_back_is_stored_but_not_verified(node: LiveNode, s3_server: Server, tmp_path: Path) -> None:
    with fault_proxy(s3_server.endpoint, only(Fault.REFUSED, "GET", "db.zst.age")) as proxy:
        config = config_for(tmp_path, s3_config(s3_server, proxy.endpoint))
        result = run(config, node, s3_server)
        assert not result.spooled
        assert result.record.verified is None
        assert not result.good
        assert result.pruned == ()
        assert [one.good for one in opened(config, s3_server).inventory().backups] == [False]
        proxy.choose = lambda _: Fault.NONE
        verify(opened(config, s3_server), result.record.id)
        assert [one.good for one in opened(config, s3_server).inventory().backups] == [True]


def test_a_backup_removes_none_where_no_rules_are_configured(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    store = DirectoryStore(tmp_path / "store")
    cluster = run(config, node).record.cluster_id
    old = [stored(store, datetime.now(UTC) - timedelta(days=days), cluster=cluster) for days in range(100, 150)]
    assert run(config, node).pruned == ()
    assert set(old) < set(listed(config))
    pruned = run(replace(config, retention=Retention()), node).pruned
    assert pruned
    assert set(pruned) < set(old)


# ---- the spool


def test_while_the_store_is_down_backups_wait_and_then_go_in_order(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    (tmp_path / "store").rename(tmp_path / "away")
    waiting = [run(config, node) for _ in range(2)]
    assert all(result.spooled and result.record.verified for result in waiting)
    (tmp_path / "away").rename(tmp_path / "store")
    result = run(config, node)
    assert result.good
    assert result.sent == tuple(one.record.id for one in waiting)
    assert set(listed(config)) == {*result.sent, result.record.id}
    for name in listed(config):
        assert verify(opened(config), name).opened
    assert [place for place in (tmp_path / "spool").rglob("*") if place.is_file()] == [tmp_path / "spool/.lock"]


def test_the_spool_is_bounded_and_keeps_the_newest(node: LiveNode, tmp_path: Path) -> None:
    config = replace(config_for(tmp_path), spool=Spool(str(tmp_path / "spool"), keep=2))
    (tmp_path / "store").rmdir()
    names = [run(config, node).record.id for _ in range(3)]
    held = sorted(place.parent.name for place in (tmp_path / "spool").rglob("record.json"))
    assert held == sorted(names[1:])


def _flipped(place: Path) -> None:
    data = bytearray(place.read_bytes())
    data[len(data) // 2] ^= 1
    place.write_bytes(data)


def _cut(place: Path) -> None:
    os.truncate(place, 10)


def _unreadable(place: Path) -> None:
    (place.parent / "record.json.sig").symlink_to("nowhere")


def _torn(place: Path) -> None:
    (place.parent / "record.json").write_bytes(b"{")


def _unrecorded(place: Path) -> None:
    (place.parent / "record.json").unlink()


@pytest.mark.parametrize(
    ("part", "damage", "why"),
    [
        ("db.zst.age", _flipped, "db.zst.age is not what was written"),
        ("node.zst.age", _flipped, "node.zst.age is not what was written"),
        ("db.zst.age", _cut, "db.zst.age is 10 bytes"),
        ("node.zst.age", Path.unlink, "node.zst.age is gone"),
        ("node.zst.age", _unreadable, "record.json.sig: Too many levels"),
        ("db.zst.age", _torn, "record.json is no record"),
        ("db.zst.age", _unrecorded, "has no record"),
    ],
)
def test_what_is_damaged_in_the_spool_holds_up_nothing(
    node: LiveNode, tmp_path: Path, part: str, damage: Callable[[Path], None], why: str
) -> None:
    config = config_for(tmp_path)
    (tmp_path / "store").rename(tmp_path / "away")
    damaged, sound = (run(config, node).record for _ in range(2))
    (tmp_path / "away").rename(tmp_path / "store")
    place = tmp_path / "spool" / damaged.path
    damage(place / part)
    for sent in ((sound.id,), ()):
        result = run(config, node)
        assert result.good
        assert result.sent == sent
        (line,) = result.warnings
        assert why in line
        assert f"it stays in {place}" in line
    assert place.is_dir()
    assert set(listed(config)) >= {sound.id, result.record.id}
    assert damaged.id not in listed(config)
    assert opened(config).inventory().orphans == ()


def test_what_is_damaged_in_the_spool_is_told_while_the_store_is_down(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    (tmp_path / "store").rmdir()
    cut, unrecorded = (run(config, node).record for _ in range(2))
    _cut(tmp_path / "spool" / cut.path / "db.zst.age")
    _unrecorded(tmp_path / "spool" / unrecorded.path / "db.zst.age")
    result = run(config, node)
    assert result.spooled
    removed, left = result.warnings
    assert removed == f"{unrecorded.path} had no record, so it was removed from the spool"
    assert "db.zst.age is 10 bytes" in left


def test_what_the_store_has_otherwise_by_that_name_holds_up_nothing(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    (tmp_path / "store").rename(tmp_path / "away")
    waiting = run(config, node).record
    (tmp_path / "away").rename(tmp_path / "store")
    opened(config).store.put(f"{waiting.path}/record.json", b"{}")
    result = run(config, node)
    assert result.good
    (line,) = result.warnings
    assert "is there already and differs" in line


def test_without_a_spool_a_store_that_is_down_is_an_error(node: LiveNode, tmp_path: Path) -> None:
    config = replace(config_for(tmp_path), spool=Spool(""))
    (tmp_path / "store").rmdir()
    with pytest.raises(StoreMissing):
        run(config, node)


def test_a_spool_that_does_not_work_is_told(node: LiveNode, tmp_path: Path) -> None:
    config = replace(config_for(tmp_path), spool=Spool("/proc/nope"))
    result = run(config, node)
    assert result.good
    why = "the spool /proc/nope cannot be used (No such file or directory)"
    assert result.warnings == (f"{why}: no backup can wait there when the store is down",)
    (tmp_path / "store").rename(tmp_path / "away")
    with pytest.raises(StoreMissing, match="is no directory, and the spool /proc/nope cannot be used"):
        run(config, node)


# ---- one at a time


def test_two_runs_on_one_machine(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    (tmp_path / "spool").mkdir()
    with (tmp_path / "spool/.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Locked, match="on this machine"):
            run(config, node)
    assert run(config, node).good


def test_two_runs_from_two_machines(node: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    store = opened(config).store
    with Etcd(node.access) as etcd:
        cluster = f"{etcd.status().cluster_id:016x}"
    elsewhere = replace(lock.owner("cp-2", ("x",), timedelta(hours=1)), boot="another")
    with lock.held(store, cluster, elsewhere), pytest.raises(Locked, match="cp-2"):
        run(config, node)
    assert run(config, node).good


# ---- etcd goes wrong


class Interrupting:
    """Calls `act` once, when that many bytes of the stream have passed."""

    def __init__(self, after: int, act: object) -> None:
        self.after, self.act, self.done = after, act, False

    def __call__(self, now: Progress) -> None:
        if not self.done and now.phase == "stream" and now.done > self.after:
            self.done = True
            assert callable(self.act)
            self.act()


def test_etcd_killed_in_the_middle_of_the_stream_leaves_nothing(tmp_path: Path) -> None:
    with live_node(tmp_path / "root") as node:
        with Etcd(node.access) as etcd:
            for batch in range(60):
                etcd.put_all([(f"/k/{batch}/{n}".encode(), os.urandom(10_000)) for n in range(100)])
        config = config_for(tmp_path)
        killer = Interrupting(0, node.etcd.kill)
        with pytest.raises(DrtoolError, match=r"etcd|snapshot"):
            run(config, node, listener=killer)
        assert killer.done
    assert listed(config) == []
    assert opened(config).inventory().orphans == ()
    assert leftovers(tmp_path) == []
