from __future__ import annotations

from pathlib import Path

import pytest

from snapshots import bolt, leafgroups, mvcc
from snapshots.bolt import Bolt, Bucket, Damaged
from snapshots.leafgroups import Group
from tests.builders import etcd_db

KEYS = [b"/key-%04d" % (number % 700) for number in range(2000)]
CHANGES: list[etcd_db.Change] = [
    (number, key, None if number % 3 == 0 else b"v" * (number % 90)) for number, key in enumerate(KEYS, 2)
]


def one_by_one(db: Bolt, bucket: Bucket) -> list[tuple[bytes, int, int]]:
    found = map(db.columns, db.leaves(bucket))
    return [pair for each in found for pair in zip(each.keys, each.starts, each.ends, strict=True)]


def together(db: Bolt, bucket: Bucket) -> list[tuple[bytes, int, int]]:
    found = leafgroups.columns(db, bucket)
    return [pair for each in found for pair in zip(each.keys, each.starts, each.ends, strict=True)]


def test_columns_are_those_of_the_pages(snapshot: tuple[str, Path]) -> None:
    with bolt.opened(snapshot[1]) as db:
        for bucket in db.buckets().values():
            assert together(db, bucket) == one_by_one(db, bucket)


def test_leaves_of_a_branch_come_together() -> None:
    data = etcd_db.db({b"key": etcd_db.key_bucket(CHANGES), b"meta": {}})
    db = bolt.parse(data, "db")
    bucket = db.buckets()[b"key"]
    assert any(isinstance(each, Group) for each in leafgroups.columns(db, bucket))
    assert together(db, bucket) == one_by_one(db, bucket)


@pytest.mark.parametrize("revision", [None, 2, 500, 1333, 2001])
def test_an_index_of_many_leaves_is_that_of_the_records(revision: int | None) -> None:
    data = etcd_db.db({b"key": etcd_db.key_bucket(CHANGES), b"meta": {}})
    keys = mvcc.keyspace(bolt.parse(data, "db"))
    newest = {key: value for number, key, value in CHANGES if revision is None or number <= revision}
    alive = {key: value for key, value in newest.items() if value is not None}
    assert {kv.key: kv.value for kv in keys.index(revision).prefix()} == alive


def test_a_leaf_met_twice_is_damage() -> None:
    data = bytearray(etcd_db.db({b"key": etcd_db.key_bucket(CHANGES), b"meta": {}}))
    db = bolt.parse(bytes(data), "db")
    bucket = db.buckets()[b"key"]
    root = db.page(bucket.root)
    assert root.flags == bolt.BRANCH
    second = root.offset + bolt.HEADER_SIZE + bolt.ELEMENT_SIZE + 8
    data[second : second + 8] = data[second - bolt.ELEMENT_SIZE : second - bolt.ELEMENT_SIZE + 8]
    with pytest.raises(Damaged, match="referred to twice"):
        mvcc.keyspace(bolt.parse(bytes(data), "db")).index()


def test_an_element_beyond_its_page_is_damage() -> None:
    data = bytearray(etcd_db.db({b"key": etcd_db.key_bucket(CHANGES), b"meta": {}}))
    db = bolt.parse(bytes(data), "db")
    page = next(db.leaves(db.buckets()[b"key"]))
    size = page.offset + bolt.HEADER_SIZE + 12
    data[size : size + 4] = b"\xff\xff\xff\x7f"
    with pytest.raises(Damaged, match=f"page {page.number}: element 0 lies outside"):
        mvcc.keyspace(bolt.parse(bytes(data), "db")).index()


def test_keys_that_servers_do_not_write_so_are_left_to_others() -> None:
    assert leafgroups.user_keys(b"\x0a\x01a", [0], [3]) == [b"a"]
    assert leafgroups.user_keys(b"\x0a\x02a", [0], [3]) is None
    assert leafgroups.user_keys(b"\x10\x01\x0a\x01a", [0], [5]) is None
    assert leafgroups.user_keys(b"\x0a\x81\x01" + b"a" * 129, [0], [132]) is None
    assert leafgroups.user_keys(b"\x0a", [0], [1]) is None
    assert leafgroups.user_keys(b"", [0], [0]) is None
