"""A killed server's log on its db: what it had answered is what the replay finds."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from drtool.core.errors import NotFound, Refused, Unsound
from snapshots import bolt, member_dir, mvcc, requests, wire
from snapshots.hashkv import hashkv
from snapshots.membership import NewMember, new_cluster
from snapshots.mvcc import KeyValue
from snapshots.replay import replay
from snapshots.restore import Restoration, restore
from snapshots.wal import NORMAL, Entry
from tests.builders import etcd_db
from tests.etcd_server import EtcdServer, encode, find_etcd, free_port, servers

SERVERS = list(servers())
NEVER_COMMITTED = ("--backend-batch-interval=1h", "--backend-batch-limit=1000000")
OPERATIONS = 400


def key(chance: random.Random) -> bytes:
    return b"/k/%d" % chance.randrange(40)


def operation(chance: random.Random) -> dict[str, Any]:
    kind = chance.random()
    if kind < 0.5:
        value = chance.randbytes(chance.randrange(3000))
        return {"requestPut": {"key": encode(key(chance)), "value": encode(value)}}
    if kind < 0.7:
        start = key(chance)
        return {"requestDeleteRange": {"key": encode(start), "range_end": encode(start[:-1] + b"9")}}
    return {"requestRange": {"key": encode(key(chance))}}


def transaction(chance: random.Random) -> dict[str, Any]:
    compared = chance.choice((
        {"target": "VERSION", "version": str(chance.randrange(4))},
        {"target": "CREATE", "create_revision": str(chance.randrange(200))},
        {"target": "MOD", "mod_revision": str(chance.randrange(200))},
        {"target": "VALUE", "value": encode(b"leased")},
        {"target": "LEASE", "lease": str(chance.randrange(20))},
    ))  # fmt: skip
    result = chance.choice(("EQUAL", "GREATER", "LESS", "NOT_EQUAL"))
    compare = {"result": result, "key": encode(key(chance)), **compared}
    if chance.random() < 0.2:
        compare["range_end"] = encode(b"/k/9")
    nested = {"compare": [{**compare, "result": "EQUAL"}], "success": [operation(chance)], "failure": []}
    success = [operation(chance), operation(chance), *([{"requestTxn": nested}] if chance.random() < 0.4 else [])]
    return {"compare": [compare], "success": success, "failure": [operation(chance)]}


def work(server: EtcdServer, chance: random.Random, compact: bool) -> None:
    """One request of some kind; many are refused by the server, as they are in life."""
    lease = chance.randrange(1, 20)
    actions: list[tuple[float, str, dict[str, Any]]] = [
        (0.30, "kv/put", {"key": encode(key(chance)), "value": encode(chance.randbytes(chance.randrange(2000)))}),
        (0.36, "kv/deleterange", {"key": encode(key(chance))}),
        (0.41, "kv/deleterange", {"key": encode(b"/k/1"), "range_end": encode(b"/k/3")}),
        (0.47, "lease/grant", {"TTL": "500", "ID": str(lease)}),
        (0.53, "kv/put", {"key": encode(key(chance)), "value": encode(b"leased"), "lease": str(lease)}),
        (0.57, "lease/revoke", {"ID": str(lease)}),
        (0.59, "kv/compaction", {"revision": str(chance.randrange(1, 200))}),
        (0.63, "kv/put", {"key": encode(key(chance)), "ignore_value": True, "lease": str(lease)}),
        (1.01, "kv/txn", transaction(chance)),
    ]
    drawn = chance.random()
    method, body = next((method, body) for limit, method, body in actions if drawn < limit)
    if method == "kv/compaction" and not compact:
        return  # it commits the db
    try:
        server.call(method, body)
    except RuntimeError:
        return


@pytest.mark.slow
@pytest.mark.parametrize(("line", "program"), SERVERS, ids=[line for line, _ in SERVERS])
@pytest.mark.parametrize("options", [NEVER_COMMITTED, ("--snapshot-count=100",)], ids=["many-missing", "some-missing"])
def test_nothing_that_a_killed_server_acknowledged_is_lost(
    line: str, program: Path, options: tuple[str, ...], tmp_path: Path
) -> None:
    chance = random.Random(line)  # noqa: S311 - to be repeated, not secret
    many_missing = options is NEVER_COMMITTED
    server = EtcdServer(program, tmp_path, options)
    with server:
        for _ in range(OPERATIONS):
            work(server, chance, compact=not many_missing)
        want, leases = server.keys(), server.call("lease/leases", {})["leases"]
        hashed = None if many_missing or line == "3.5" else server.hashkv()  # the question commits the db
        server.kill()
    with member_dir.opened(server.data_dir) as held:
        missing = held.missing()
        assert held.log.tail.kind == "clean"
    if many_missing:
        assert len(missing) > 10
    port = free_port()
    again = tmp_path / "again"
    again.mkdir()
    cluster = new_cluster([NewMember("m1", (f"http://127.0.0.1:{port}",))])
    restored = restore(server.data_dir, again / "m1.etcd", Restoration(cluster, "m1", bump=0))
    assert restored.replayed == len(missing)
    with mvcc.opened(member_dir.locate(again / "m1.etcd") / "snap" / "db") as keys:
        assert {kv.key: (kv.value, kv[1], kv[2], kv[3], kv.lease) for kv in keys.index().prefix()} == want
        if hashed is not None:
            found = hashkv(keys)
            assert (found.hash, found.revision) == (hashed[0], hashed[2])
    with EtcdServer(program, again, peer_port=port) as booted:
        assert booted.keys() == want
        ids = {lease["ID"] for lease in leases}
        assert {lease["ID"] for lease in booted.call("lease/leases", {})["leases"]} == ids


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a server killed after 50 puts of which its db has seen none."""
    directory = tmp_path_factory.mktemp("killed")
    with EtcdServer(find_etcd(), directory, NEVER_COMMITTED) as server:
        for number in range(50):
            server.put(b"k%02d" % number, b"v" * 100)
        server.kill()
    return server.data_dir


@pytest.fixture
def copied(killed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed, tmp_path / "m1.etcd"))


ONE = Restoration(new_cluster([NewMember("m1", ("http://127.0.0.1:2380",))]), "m1", bump=0)


def segment(directory: Path) -> Path:
    return next((directory / "member" / "wal").glob("*.wal"))


def used(directory: Path) -> int:
    with member_dir.opened(directory) as held:
        return held.log.tail.offset


def test_a_torn_tail_loses_only_what_was_never_acknowledged(copied: Path, tmp_path: Path) -> None:
    path = segment(copied)
    with path.open("r+b") as file:
        file.truncate(used(copied) - 10)
    with member_dir.opened(copied) as held:
        assert held.log.tail.kind == "torn"
    with mvcc.opened(restored_db(copied, tmp_path)) as keys:
        assert len(keys.index()) >= 48


def restored_db(directory: Path, tmp_path: Path) -> Path:
    restore(directory, tmp_path / "new", ONE)
    return tmp_path / "new" / "member" / "snap" / "db"


def test_corruption_is_told_from_a_torn_tail(copied: Path, tmp_path: Path) -> None:
    path = segment(copied)
    data = bytearray(path.read_bytes())
    at = data.index(b"k25")
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(Unsound, match="the log is corrupt"):
        restored_db(copied, tmp_path)
    loose = Restoration(ONE.cluster, "m1", bump=0, check_hash=False)
    restore(copied, tmp_path / "loose", loose)
    with mvcc.opened(tmp_path / "loose" / "member" / "snap" / "db") as keys:
        assert len(keys.index()) == 25


def test_a_torn_meta_page_goes_back_one_commit_and_the_log_brings_it_forward(copied: Path, tmp_path: Path) -> None:
    db = copied / "member" / "snap" / "db"
    data = bytearray(db.read_bytes())
    newest = bolt.parse(bytes(data), "db").meta.txid % 2
    data[newest * 4096 + 30] ^= 0xFF
    db.write_bytes(data)
    with mvcc.opened(restored_db(copied, tmp_path)) as keys:
        assert len(keys.index()) == 50


def test_a_gap_between_db_and_log_is_told() -> None:
    keys = mvcc.keyspace(bolt.parse(etcd_db.db({b"meta": {b"consistent_index": (5).to_bytes(8)}}), "db"))
    with pytest.raises(Unsound, match="goes on at entry 8, the db ends at 5"):
        replay(keys, [Entry(8, 1, NORMAL, b"")])


def test_a_directory_of_something_else_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no member/snap/db"), member_dir.opened(tmp_path):
        pass


def test_a_running_server_is_refused(tmp_path: Path) -> None:
    with (
        EtcdServer(find_etcd(), tmp_path) as server,
        pytest.raises(Refused, match="open in a running etcd"),
    ):
        restore(server.data_dir, tmp_path / "new", ONE)


def put(name: bytes, value: bytes) -> bytes:
    return wire.field(1, 9) + wire.field(4, wire.field(1, name) + wire.field(2, value))


def alarm(action: int) -> bytes:
    return wire.field(10, wire.field(1, action) + wire.field(2, 7) + wire.field(3, 1))


def test_what_a_server_without_space_refused_is_not_applied() -> None:
    keys = mvcc.keyspace(bolt.parse(etcd_db.db({}), "db"))
    log = [put(b"a", b"1"), alarm(requests.ACTIVATE), put(b"b", b"1"), alarm(requests.DEACTIVATE), put(b"c", b"1")]
    done = replay(keys, [Entry(at, 2, NORMAL, data) for at, data in enumerate(log, 1)])
    appended = [mvcc.decode_key_value(value) for _, value in done.amendment.appended[b"key"]]
    assert appended == [KeyValue(b"a", 2, 2, 1, b"1", 0), KeyValue(b"c", 3, 3, 1, b"1", 0)]
    assert (done.revision, done.index, done.term) == (3, 5, 2)


def test_old_requests_and_users_are_told_apart() -> None:
    keys = mvcc.keyspace(bolt.parse(etcd_db.db({}), "db"))
    v2 = wire.field(1, 3) + wire.field(2, b"PUT") + wire.field(3, b"/0/members/x") + wire.field(4, b"{}")
    user = wire.field(1, 4) + wire.field(1100, wire.field(1, b"root"))
    done = replay(keys, [Entry(1, 1, NORMAL, v2), Entry(2, 1, NORMAL, user), Entry(3, 1, NORMAL, b"")])
    assert done.ignored == {"a change of users or roles": 1}
    assert done.applied == 3


def test_an_entry_that_is_no_request_is_told() -> None:
    keys = mvcc.keyspace(bolt.parse(etcd_db.db({}), "db"))
    with pytest.raises(Unsound, match="entry 1 of the log"):
        replay(keys, [Entry(1, 1, NORMAL, wire.field(77, b"x"))])
