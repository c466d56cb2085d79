from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshots import amend, bolt
from snapshots.amend import Amendment
from snapshots.survey import survey
from tests.builders import etcd_db

VALUES = st.binary(max_size=9000) | st.binary(max_size=40)
PAGE_SIZES = st.sampled_from((1024, 4096, 65536))


def key(number: int) -> bytes:
    return number.to_bytes(8) + b"_" + bytes(8)


def kv(value: bytes) -> bytes:
    return b"\x0a\x01k\x2a" + amend_varint(len(value)) + value


def amend_varint(number: int) -> bytes:
    from snapshots import wire

    return wire.encode_varint(number)


def amended(data: bytes, amendment: Amendment, path: Path) -> bytes:
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDWR)
    try:
        size = amend.apply(descriptor, bolt.parse(data, "db"), amendment)
    finally:
        os.close(descriptor)
    assert path.stat().st_size == size
    return path.read_bytes()


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, max_size=120), st.lists(VALUES, max_size=120), PAGE_SIZES)
def test_what_is_appended_comes_after_what_was_there(
    tmp_path_factory: pytest.TempPathFactory, old: list[bytes], new: list[bytes], page_size: int
) -> None:
    before = {key(number): kv(value) for number, value in enumerate(old)}
    after = {key(len(old) + number): kv(value) for number, value in enumerate(new)}
    path = tmp_path_factory.mktemp("amend") / "db"
    data = amended(etcd_db.db({b"key": before}, page_size), Amendment(appended={b"key": list(after.items())}), path)
    db = bolt.parse(data, "db")
    assert dict(db.pairs(db.buckets()[b"key"])) == before | after
    assert survey(db).pairs == len(before) + len(after)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.binary(min_size=1, max_size=40), VALUES, max_size=60), PAGE_SIZES)
def test_a_replaced_bucket_holds_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, pairs: dict[bytes, bytes], page_size: int
) -> None:
    path = tmp_path_factory.mktemp("amend") / "db"
    base = etcd_db.db({b"members": {b"old": b"x"}, b"lease": {b"stays": b"y"}}, page_size)
    db = bolt.parse(amended(base, Amendment({b"members": pairs, b"new": {b"a": b"b"}}), path), "db")
    buckets = db.buckets()
    assert dict(db.pairs(buckets[b"members"])) == pairs
    assert dict(db.pairs(buckets[b"lease"])) == {b"stays": b"y"}
    assert dict(db.pairs(buckets[b"new"])) == {b"a": b"b"}
    assert survey(db).free >= 1


def test_a_deep_tree_takes_more_at_its_end(tmp_path: Path) -> None:
    before = {key(number): kv(b"v" * 50) for number in range(4000)}
    more = [(key(4000 + number), kv(b"w" * 700)) for number in range(500)]
    data = amended(etcd_db.db({b"key": before}, 1024), Amendment(appended={b"key": more}), tmp_path / "db")
    db = bolt.parse(data, "db")
    assert survey(db).pairs == 4500
    assert list(db.pairs(db.buckets()[b"key"]))[-1] == more[-1]


def test_both_metas_are_written_and_either_is_enough(tmp_path: Path) -> None:
    base = etcd_db.db({b"key": {key(1): kv(b"x")}})
    data = amended(base, Amendment(appended={b"key": [(key(2), kv(b"y"))]}), tmp_path / "db")
    for torn in (0, 1):
        broken = bytearray(data)
        broken[torn * 4096 + 40] ^= 0xFF
        db = bolt.parse(bytes(broken), "db")
        assert len(dict(db.pairs(db.buckets()[b"key"]))) == 2
