from __future__ import annotations

from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from drtool.core.errors import Unsound
from snapshots import wal, wire
from snapshots.wal import ENTRY, METADATA, SNAPSHOT, STATE, Entry, Record

FIRST = "0000000000000000-0000000000000000.wal"
SECOND = "0000000000000001-0000000000000004.wal"


def entry(index: int, term: int = 1, data: bytes = b"data") -> Record:
    return Record(ENTRY, wal.encode_entry(Entry(index, term, 0, data)))


def state(commit: int) -> Record:
    return Record(STATE, wire.field(1, 1) + wire.field(2, 7) + wire.field(3, commit))


HEAD = [
    Record(METADATA, wire.field(1, 7) + wire.field(2, 9)),
    Record(SNAPSHOT, wire.field(1, 0) + wire.field(2, 0)),
]


def write(directory: Path, records: list[Record], name: str = FIRST, spare: int = 4096) -> bytes:
    data = wal.frames(records)
    (directory / name).write_bytes(data + bytes(spare))
    return data


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, [*HEAD, entry(1), entry(2), state(1)])
    log = wal.read(tmp_path)
    assert (log.member_id, log.cluster_id) == (7, 9)
    assert [(one.index, one.term, one.data) for one in log.entries] == [(1, 1, b"data"), (2, 1, b"data")]
    assert log.state.commit == 1
    assert log.tail.kind == "clean"


def test_a_later_record_of_an_index_replaces_the_tail(tmp_path: Path) -> None:
    write(tmp_path, [*HEAD, entry(1), entry(2), entry(3), entry(2, term=2, data=b"new")])
    assert [(one.index, one.term) for one in wal.read(tmp_path).entries] == [(1, 1), (2, 2)]


def test_entries_that_the_db_has_seen_need_no_data(tmp_path: Path) -> None:
    write(tmp_path, [*HEAD, entry(1), entry(2), entry(3)])
    assert [one.data for one in wal.read(tmp_path, after=2).entries] == [b"", b"", b"data"]


@pytest.mark.parametrize("cut", [1, 8, 9, 20])
def test_a_record_cut_by_the_end_of_the_file_is_torn(tmp_path: Path, cut: int) -> None:
    data = write(tmp_path, [*HEAD, entry(1), entry(2)], spare=0)
    (tmp_path / FIRST).write_bytes(data[:-cut])
    log = wal.read(tmp_path)
    assert [one.index for one in log.entries] == [1]
    assert log.tail.kind == "torn"


def test_a_record_with_a_sector_that_was_never_written_is_torn(tmp_path: Path) -> None:
    head = wal.frames([*HEAD, entry(1)])
    data = bytearray(write(tmp_path, [*HEAD, entry(1), entry(2, data=b"x" * 3000)]))
    sector = (len(head) // 512 + 2) * 512
    data[sector : sector + 512] = bytes(512)
    (tmp_path / FIRST).write_bytes(data + bytes(4096))
    log = wal.read(tmp_path)
    assert (log.tail.kind, log.tail.offset) == ("torn", len(head))


def test_a_changed_byte_is_corruption_and_is_placed(tmp_path: Path) -> None:
    head = wal.frames([*HEAD, entry(1)])
    data = bytearray(write(tmp_path, [*HEAD, entry(1), entry(2, data=b"x" * 3000), entry(3)]))
    data[len(head) + 1000] ^= 1
    (tmp_path / FIRST).write_bytes(data + bytes(4096))
    log = wal.read(tmp_path)
    assert (log.tail.kind, log.tail.offset) == ("corrupt", len(head))
    assert "checksum" in log.tail.reason
    assert [one.index for one in log.entries] == [1]


def second_segment(crc: int) -> bytes:
    """Records whose chain goes on from `crc`."""
    parts = [wire.field(1, wal.CRC) + wire.field(2, crc)]
    for kind, data in [*HEAD, entry(3), entry(4)]:
        crc = crc32c(data, crc)
        parts.append(wire.field(1, kind) + wire.field(2, crc) + wire.field(3, data))
    return b"".join(frame(part) for part in parts)


def frame(record: bytes) -> bytes:
    padding = -len(record) % 8
    length = len(record) | ((0x80 | padding) << 56 if padding else 0)
    return length.to_bytes(8, "little") + record + bytes(padding)


def test_the_checksum_runs_through_all_segments(tmp_path: Path) -> None:
    records = [*HEAD, entry(1), entry(2)]
    write(tmp_path, records)
    crc = 0
    for _, data in records:
        crc = crc32c(data, crc)
    (tmp_path / SECOND).write_bytes(second_segment(crc))
    assert [one.index for one in wal.read(tmp_path).entries] == [1, 2, 3, 4]
    (tmp_path / SECOND).write_bytes(second_segment(crc ^ 1))
    log = wal.read(tmp_path)
    assert (log.tail.kind, log.tail.segment) == ("corrupt", SECOND)
    assert [one.index for one in log.entries] == [1, 2]


def test_a_missing_segment_and_no_segment_are_told(tmp_path: Path) -> None:
    with pytest.raises(Unsound, match="no WAL segment"):
        wal.read(tmp_path)
    write(tmp_path, HEAD)
    write(tmp_path, HEAD, "0000000000000002-0000000000000004.wal")
    with pytest.raises(Unsound, match="segment 0000000000000001 of the WAL is missing"):
        wal.read(tmp_path)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_bytes_are_a_log_with_an_end(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    directory = tmp_path_factory.mktemp("wal")
    raw = bytearray(write(directory, [*HEAD, entry(1), entry(2, data=b"y" * 600), state(2)]))
    for _ in range(data.draw(st.integers(0, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    (directory / FIRST).write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    log = wal.read(directory)
    assert log.tail.kind in ("clean", "torn", "corrupt")
