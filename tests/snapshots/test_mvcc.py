from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drtool.core.errors import UsageError
from snapshots import bolt, mvcc, wire
from snapshots.bolt import Damaged
from snapshots.mvcc import Keyspace, KeyValue, Revision
from tests.builders import etcd_db
from tests.snapshots import real

CHANGES = [
    (2, b"/a", b"1"), (3, b"/b", b"1"), (4, b"/a", b"2"), (5, b"/a", None), (6, b"/c\xff", b"1"), (7, b"/a", b"3"),
    (8, b"/c", b"2"), (9, b"/b", None),
]  # fmt: skip
NUMBERS = st.integers(0, 2**63 - 1)
KEY_VALUES = st.builds(KeyValue, st.binary(max_size=300), NUMBERS, NUMBERS, NUMBERS, st.binary(max_size=300), NUMBERS)


def keyspace(changes: list[etcd_db.Change] = CHANGES, meta: dict[bytes, bytes] | None = None) -> Keyspace:
    data = etcd_db.db({b"key": etcd_db.key_bucket(changes), b"meta": meta or {}})
    return mvcc.keyspace(bolt.parse(data, "db"))


@pytest.mark.parametrize("line", real.LINES)
def test_every_key_is_what_the_server_answered(line: str, tmp_path: Path) -> None:
    path = tmp_path / "db"
    path.write_bytes(real.data(f"etcd-{line}"))
    with mvcc.opened(path) as keys:
        found = [
            [
                base64.b64encode(kv.key).decode(), hashlib.sha256(kv.value).hexdigest(),
                kv.create_revision, kv.mod_revision, kv.version, kv.lease,
            ]
            for kv in keys.index().prefix()
        ]  # fmt: skip
        truth = real.load(f"etcd-{line}", "truth.json")
        assert sorted(found) == sorted(real.keys(f"etcd-{line}"))
        assert keys.last().main == truth["revision"]
        assert keys.compacted() == truth["compactRevision"]


def test_an_index_is_of_its_revision() -> None:
    keys = keyspace()
    assert keys.index().keys() == [b"/a", b"/c", b"/c\xff"]
    assert keys.index(4).keys() == [b"/a", b"/b"]
    assert keys.index(5).keys() == [b"/b"]
    found = keys.index(4).get(b"/a")
    assert found == KeyValue(b"/a", 2, 4, 2, b"2", 0)
    assert keys.index(5).get(b"/a") is None


def test_a_prefix_ends_where_its_last_byte_does() -> None:
    index = keyspace().index()
    assert [kv.key for kv in index.prefix(b"/c")] == [b"/c", b"/c\xff"]
    assert index.keys(b"/c\xff") == [b"/c\xff"]
    assert index.keys(b"\xff") == []
    assert index.keys(b"/d") == []
    assert b"/c" in index
    assert len(index) == 3


def test_history_has_changes_and_deletions_oldest_first() -> None:
    changes = list(keyspace().history(b"/a"))
    assert [(change.revision.main, change.kv and change.kv.value) for change in changes] == [
        (2, b"1"), (4, b"2"), (5, None), (7, b"3"),
    ]  # fmt: skip


def test_revisions_to_come_and_compacted_ones_are_told() -> None:
    keys = keyspace(meta={b"finishedCompactRev": mvcc.encode_revision(Revision(4))})
    assert keys.compacted() == 4
    with pytest.raises(UsageError, match="yet to come"):
        keys.index(10)
    with pytest.raises(UsageError, match="compacted"):
        keys.index(3)
    assert len(keys.index(4)) == 2


def test_an_empty_db_has_revision_0() -> None:
    keys = keyspace([])
    assert keys.last() == Revision(0)
    assert len(keys.index()) == 0


@given(KEY_VALUES)
def test_a_key_value_is_read_as_it_was_written(kv: KeyValue) -> None:
    data = mvcc.encode_key_value(kv)
    assert mvcc.decode_key_value(data) == kv
    assert mvcc.user_key(data, 0, len(data)) == kv.key
    assert mvcc.checked_user_key(b"ab" + data + b"cd", 2, 2 + len(data)) == kv.key


@given(st.one_of(st.binary(max_size=80), KEY_VALUES.map(mvcc.encode_key_value)), st.data())
def test_the_fast_check_of_a_key_value_agrees_with_the_decoder(data: bytes, draw: st.DataObject) -> None:
    changed = bytearray(data)
    if changed:
        changed[draw.draw(st.integers(0, len(changed) - 1))] = draw.draw(st.integers(0, 255))
    data = bytes(changed)
    assert outcome(lambda: mvcc.checked_user_key(data, 0, len(data))) == outcome(
        lambda: mvcc.decode_key_value(data).key
    )


@pytest.mark.parametrize(
    "data", [b"\x0a\x7fabc", b"\x0a\x04abc", b"\x0a\x03abc\x2a", b"\x0a\x03abc\x2a\x05ab", b"\x0a"]
)
def test_a_key_value_that_is_cut_is_malformed(data: bytes) -> None:
    with pytest.raises(wire.Malformed):
        mvcc.checked_user_key(data, 0, len(data))


def outcome(read: object) -> bytes | str:
    try:
        found: bytes = read()  # type: ignore[operator]
    except wire.Malformed:
        return "malformed"
    return found


def test_a_negative_lease_is_negative() -> None:
    kv = KeyValue(b"k", 1, 1, 1, b"v", -5)
    assert mvcc.decode_key_value(mvcc.encode_key_value(kv)).lease == -5


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31), st.booleans())
def test_a_revision_is_read_as_it_was_written(main: int, sub: int, tombstone: bool) -> None:
    key = mvcc.encode_revision(Revision(main, sub), tombstone)
    assert mvcc.decode_revision(key) == (main, sub)


def test_a_bad_key_value_names_its_page() -> None:
    data = etcd_db.db({b"key": {mvcc.encode_revision(Revision(2)): b"\x0b" * 3000}})
    with pytest.raises(Damaged, match="page 3: bad KeyValue"):
        mvcc.keyspace(bolt.parse(data, "db")).index()
