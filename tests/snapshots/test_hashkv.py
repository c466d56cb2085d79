from __future__ import annotations

from pathlib import Path

import pytest

from drtool.core.errors import UsageError
from snapshots import bolt, mvcc
from snapshots.hashkv import hashkv
from snapshots.mvcc import Revision, encode_revision
from tests.builders import etcd_db
from tests.snapshots import real


@pytest.mark.parametrize("line", real.LINES)
def test_it_is_what_the_server_answered(line: str, tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(real.data(f"etcd-{line}"))
    before = path.read_bytes()
    truth = real.load(f"etcd-{line}", "truth.json")
    with mvcc.opened(path) as keys:
        found = hashkv(keys)
    assert (found.hash, found.compact_revision) == (truth["hashkv"], truth["compactRevision"])
    assert path.read_bytes() == before


CHANGES = [(2, b"a", b"1"), (3, b"b", b"1"), (4, b"a", None), (5, b"b", b"2"), (6, b"a", b"1")]


def compacted(at: int) -> mvcc.Keyspace:
    meta = {b"finishedCompactRev": encode_revision(Revision(at))}
    return mvcc.keyspace(bolt.parse(etcd_db.db({b"key": etcd_db.key_bucket(CHANGES), b"meta": meta}), "db"))


def test_what_a_compaction_drops_is_left_out() -> None:
    pairs = {key: value for key, value in etcd_db.key_bucket(CHANGES).items() if key[7] >= 5}
    left = mvcc.keyspace(bolt.parse(etcd_db.db({b"key": pairs}), "db"))
    assert hashkv(compacted(5)).hash == hashkv(left).hash


def test_revisions_that_cannot_be_hashed_are_told() -> None:
    with pytest.raises(UsageError, match="compacted"):
        hashkv(compacted(4), 3)
    with pytest.raises(UsageError, match="yet to come"):
        hashkv(compacted(4), 7)


def test_an_empty_keyspace_has_a_hash() -> None:
    found = hashkv(mvcc.keyspace(bolt.parse(etcd_db.db({}), "db")))
    assert (found.revision, found.compact_revision) == (0, -1)
