from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from drtool.core.errors import NotFound, Unsound
from snapshots import bolt
from snapshots.bolt import Damaged
from tests.builders import etcd_db

PAIRS = {b"k%04d" % number: b"v" * (number % 90) for number in range(900)}
PAGE_SIZES = (1024, 4096, 8192, 16384, 65536)


def pairs(data: bytes) -> dict[bytes, bytes]:
    db = bolt.parse(data, "db")
    return dict(db.pairs(db.buckets()[b"key"]))


@pytest.mark.parametrize("page_size", PAGE_SIZES)
def test_pairs_come_back_in_order_whatever_the_page_size(page_size: int) -> None:
    assert list(pairs(etcd_db.db({b"key": PAIRS}, page_size)).items()) == sorted(PAIRS.items())


def test_values_larger_than_a_page_have_overflow_pages() -> None:
    large = {b"a": b"x" * 10, b"b": b"y" * 300_000, b"c": b"z"}
    assert pairs(etcd_db.db({b"key": large})) == large


def test_a_small_bucket_is_inline_and_an_absent_one_is_absent() -> None:
    db = bolt.parse(etcd_db.db({b"lease": {b"12345678": b"x"}}), "db")
    lease = db.buckets()[b"lease"]
    assert lease.inline is not None
    assert dict(db.pairs(lease)) == {b"12345678": b"x"}
    assert b"nothing" not in db.buckets()


def test_buckets_of_real_snapshots(snapshot: tuple[str, Path]) -> None:
    with bolt.opened(snapshot[1]) as db:
        assert list(db.buckets()) == sorted(db.buckets())
        assert {b"key", b"meta", b"members", b"lease", b"alarm", b"cluster"} <= set(db.buckets())
        assert db.used + 32 == db.size
        assert db.trailer_holds() is True


def test_a_changed_byte_is_seen_by_the_trailer_only(tmp_path: Path) -> None:
    data = bytearray(etcd_db.snapshot({b"key": PAIRS}))
    data[data.index(b"vvvv")] ^= 1
    (tmp_path / "db").write_bytes(data)
    with bolt.opened(tmp_path / "db") as db:
        assert db.trailer_holds() is False


def test_a_raw_db_has_no_trailer(tmp_path: Path) -> None:
    (tmp_path / "db").write_bytes(etcd_db.db({b"key": PAIRS}) + bytes(16 * 4096))
    with bolt.opened(tmp_path / "db") as db:
        assert db.trailer is None
        assert db.trailer_holds() is None


@pytest.mark.parametrize("change", [-31, -1, 1, 31, 33])
def test_a_snapshot_that_lost_or_won_bytes_is_no_raw_db(change: int) -> None:
    data = etcd_db.snapshot({b"key": PAIRS})
    assert bolt.parse((data + bytes(33))[: len(data) + change], "db").trailer_holds() is False


def break_meta(data: bytes, number: int, page_size: int = 4096) -> bytes:
    broken = bytearray(data)
    broken[number * page_size + 40] ^= 0xFF
    return bytes(broken)


@pytest.mark.parametrize("page_size", PAGE_SIZES)
@pytest.mark.parametrize("torn", [0, 1])
def test_one_torn_meta_page_loses_nothing(torn: int, page_size: int) -> None:
    data = break_meta(etcd_db.db({b"key": PAIRS}, page_size), torn, page_size)
    assert pairs(data) == PAIRS
    assert bolt.parse(data, "db").metas[torn] is None


def test_two_torn_meta_pages_are_told(tmp_path: Path) -> None:
    (tmp_path / "db").write_bytes(break_meta(break_meta(etcd_db.db({}), 0), 1))
    with pytest.raises(Unsound, match="neither of the two meta pages"), bolt.opened(tmp_path / "db"):
        pass


def test_a_truncated_file_names_the_first_page_that_is_missing() -> None:
    data = etcd_db.db({b"key": PAIRS})
    with pytest.raises(Unsound, match=r"truncated: .* page 5 and all after it"):
        bolt.parse(data[: 5 * 4096 + 17], "db")


@pytest.mark.parametrize("content", [b"", b"\0", b"not a db at all" * 1000])
def test_what_is_no_db_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "db").write_bytes(content)
    with pytest.raises(Unsound), bolt.opened(tmp_path / "db"):
        pass


def test_an_absent_file_a_directory_and_a_pipe_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound), bolt.opened(tmp_path / "none"):
        pass
    with pytest.raises(Unsound, match="no regular file"), bolt.opened(tmp_path):
        pass
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unsound, match="no regular file"), bolt.opened(tmp_path / "pipe"):
        pass


def key_root(data: bytes) -> int:
    return bolt.parse(data, "db").buckets()[b"key"].root


def patched(data: bytes, offset: int, form: str, *values: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, offset, *values)
    return bytes(changed)


def test_a_loop_ends_with_the_page_that_is_met_again() -> None:
    data = etcd_db.db({b"key": PAIRS})
    root = key_root(data)
    looping = patched(data, root * 4096 + 16 + 8, "<Q", root)
    with pytest.raises(Damaged, match="referred to twice") as told:
        pairs(looping)
    assert told.value.page == root


@pytest.mark.parametrize(
    ("offset", "form", "value", "message"),
    [
        (0, "<Q", 77, "calls itself page 77"),
        (8, "<H", 0x20, "flags 0x20"),
        (10, "<H", 0xFFFF, "do not fit"),
        (12, "<I", 0xFFFF_FFFF, "overflow pages reach beyond"),
        (16, "<I", 0xFFFF_FFF0, "lies outside of the page"),
        (24, "<Q", 1 << 60, "the file has pages 2 to"),
    ],
)
def test_a_branch_page_that_contradicts_itself_is_named(offset: int, form: str, value: int, message: str) -> None:
    data = etcd_db.db({b"key": PAIRS})
    with pytest.raises(Damaged, match=message):
        pairs(patched(data, key_root(data) * 4096 + offset, form, value))
