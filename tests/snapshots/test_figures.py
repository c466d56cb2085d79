from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from snapshots import amend, bolt, figures
from snapshots.figures import Status
from snapshots.mvcc import Revision, encode_revision
from snapshots.stream.check import StreamCheck
from snapshots.stream.tree import Kept, settle
from snapshots.survey import survey
from snapshots.survey_beside import survey_beside
from snapshots.totals import prefix_of
from tests.builders import etcd_db
from tests.etcd_server import find_etcd
from tests.snapshots import real

MANY = [(number + 2, b"/registry/pods/ns/%05d" % (number % 4000), b"v" * (number % 300)) for number in range(6000)]


def test_figures_are_those_of_etcdutl(snapshot: tuple[str, Path]) -> None:
    name, path = snapshot
    want = real.load(name, "status.json")
    found = figures.read(path)
    assert found.figures is not None
    assert {
        "hash": found.figures.hash,
        "revision": found.figures.revision,
        "totalKey": found.figures.total_key,
        "totalSize": found.figures.total_size,
        "version": found.figures.version,
    } == want
    assert found.structure.sound
    assert found.trailer is True


def test_the_older_count_of_keys_is_that_of_etcdutl_3_5(snapshot: tuple[str, Path]) -> None:
    program = [str(find_etcd("etcdutl")), "snapshot", "status", str(snapshot[1]), "-w", "json"]
    theirs = json.loads(subprocess.run(program, check=True, capture_output=True).stdout)
    found = figures.read(snapshot[1]).figures
    assert found is not None
    assert (found.hash, found.pairs) == (theirs["hash"], theirs["totalKey"])


@pytest.mark.parametrize("line", real.LINES)
def test_members_leases_and_compaction_are_the_servers(line: str, tmp_path: Path) -> None:
    (tmp_path / "db").write_bytes(real.data(f"etcd-{line}"))
    found = figures.read(tmp_path / "db")
    truth = real.load(f"etcd-{line}", "truth.json")
    assert found.figures is not None
    assert found.cluster is not None
    assert found.figures.compacted == truth["compactRevision"]
    assert [one.id for one in found.cluster.members] == [truth["memberId"]]
    assert found.cluster.leases == len(truth["leases"])
    assert found.cluster.version == f"{line}.0"


@pytest.mark.parametrize("page_size", [1024, 4096, 16384, 65536])
def test_a_stream_tells_what_the_file_tells(page_size: int) -> None:
    buckets = {b"key": etcd_db.key_bucket(MANY), b"meta": {b"storageVersion": b"3.6.0"}}
    data = etcd_db.snapshot(buckets, page_size)
    assert streamed(data, 1000) == without_names(figures.status(bolt.parse(data, "db")))


@pytest.mark.parametrize("chunk", [1, 31, 4096, 32768, 10_000_000])
def test_the_size_of_the_chunks_does_not_matter(chunk: int) -> None:
    data = etcd_db.snapshot({b"key": etcd_db.key_bucket(MANY[:60])})
    assert streamed(data, chunk) == without_names(figures.status(bolt.parse(data, "db")))


def test_real_snapshots_stream_like_files(snapshot: tuple[str, Path]) -> None:
    data = snapshot[1].read_bytes()
    assert streamed(data, 32768) == without_names(figures.status(bolt.parse(data, "snapshot")))


def streamed(data: bytes, chunk: int) -> Status:
    check = StreamCheck("db")
    for at in range(0, len(data), chunk):
        check.feed(data[at : at + chunk])
    return check.finish()


@pytest.mark.parametrize(("worth", "given"), [(60, 1), (59, 0)])
def test_what_is_kept_of_a_large_db_is_not_copied_to_be_settled(
    monkeypatch: pytest.MonkeyPatch, worth: int, given: int
) -> None:
    monkeypatch.setattr("snapshots.stream.check.BESIDE", worth)
    data = etcd_db.snapshot({b"key": etcd_db.key_bucket(MANY[:60])})
    check, copied = StreamCheck("db"), []

    def begin(kept: Kept) -> Callable[[], Status]:
        copied.append(kept)
        return lambda: settle(kept)

    check.feed(data)
    assert check.finishing(begin)() == without_names(figures.status(bolt.parse(data, "db")))
    assert len(copied) == given


def without_names(status: Status) -> Status:
    """A stream does not keep the names of the most rewritten keys."""
    assert status.figures is not None
    return replace(status, figures=replace(status.figures, rewritten=()))


def test_prefixes_count_live_keys_and_all_revisions() -> None:
    changes = [
        (2, b"/registry/pods/a/b", b"x"), (3, b"/registry/pods/a/b", b"xy"), (4, b"/registry/pods/a/c", b"x"),
        (5, b"/registry/pods/a/c", None), (6, b"compact_rev_key", b"1"),
    ]  # fmt: skip
    status = figures.status(bolt.parse(etcd_db.db({b"key": etcd_db.key_bucket(changes)}), "db"))
    assert status.figures is not None
    found = {one.prefix: (one.keys, one.revisions) for one in status.figures.prefixes}
    assert found == {b"/registry/pods/": (1, 4), b"compact_rev_key": (1, 1)}
    assert status.figures.total_key == 2
    assert [one.revisions for one in status.figures.rewritten[:2]] == [2, 2]
    assert status.figures.keys_by_prefix() == {"/registry/pods/": 1, "compact_rev_key": 1}


@pytest.mark.parametrize(
    ("key", "prefix"),
    [
        (b"/registry/pods/ns/name", b"/registry/pods/"),
        (b"/registry/services/specs/ns/name", b"/registry/services/specs/"),
        (b"/registry/apiregistration.k8s.io/apiservices/x", b"/registry/apiregistration.k8s.io/apiservices/"),
        (b"/registry/ranges/serviceips", b"/registry/ranges/serviceips"),
        (b"/registry/health", b"/registry/health"),
        (b"/other/x", b"/other/"),
        (b"plain", b"plain"),
        (b"", b""),
        (b"/registry/", b"/registry/"),
    ],
)
def test_the_prefix_of_a_key(key: bytes, prefix: bytes) -> None:
    assert prefix_of(key) == prefix


PARENT = os.getpid()


def killed() -> None:
    if os.getpid() != PARENT:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("trailer", [lambda: None, lambda: time.sleep(0.5), killed], ids=["at once", "late", "killed"])
@pytest.mark.parametrize("page_size", [1024, 4096, 65536])
def test_both_shares_make_the_whole(trailer: Callable[[], None], page_size: int) -> None:
    changes = [*MANY, (9000, MANY[0][1], None), (9001, MANY[-1][1], None), (9002, MANY[-1][1], b"back")]
    db = bolt.parse(etcd_db.db({b"key": etcd_db.key_bucket(changes)}, page_size), "db")
    whole, (shared, _) = survey(db), survey_beside(db, trailer, worth=0)
    assert (whole.crc, whole.pairs, whole.newest) == (shared.crc, shared.pairs, shared.newest)
    assert (whole.totals(), whole.dead, whole.seen) == (shared.totals(), shared.dead, shared.seen)


def test_what_the_trailing_hash_is_comes_with_the_shares() -> None:
    db = bolt.parse(etcd_db.db({b"key": etcd_db.key_bucket(MANY)}), "db")
    assert survey_beside(db, lambda: False, worth=0)[1] is False
    assert survey_beside(db, lambda: True, worth=1 << 40)[1] is True


def test_a_fault_in_either_share_is_named() -> None:
    data = etcd_db.db({b"key": etcd_db.key_bucket(MANY)}, 1024)
    pages = leaves(data)
    for page in (pages[1], pages[-2]):
        broken = bytearray(data)
        broken[page.offset] ^= 0xFF
        with pytest.raises(bolt.Damaged) as told:
            survey_beside(bolt.parse(bytes(broken), "db"), lambda: None, worth=0)
        assert told.value.page == page.number


def test_a_damaged_page_is_named_and_the_rest_counted() -> None:
    data = bytearray(etcd_db.db({b"key": etcd_db.key_bucket(MANY)}))
    pages = leaves(bytes(data))
    bad = pages[len(pages) // 2].number
    data[bad * 4096] ^= 0xFF
    status = figures.status(bolt.parse(bytes(data), "db"))
    assert [fault.page for fault in status.structure.faults] == [bad]
    assert status.figures is not None
    assert 3800 < status.figures.total_key < 4000
    again = streamed(bytes(data), 5000)
    assert [fault.page for fault in again.structure.faults] == [bad]
    assert again.figures is not None
    assert again.figures.total_key == status.figures.total_key


def leaves(data: bytes) -> list[bolt.Page]:
    db = bolt.parse(data, "db")
    return list(db.leaves(db.buckets()[b"key"]))


def test_keys_out_of_order_are_a_fault_of_their_page() -> None:
    pairs = etcd_db.key_bucket(MANY)
    data = etcd_db.db({b"key": pairs})
    swapped = encode_revision(Revision(100)), encode_revision(Revision(999_999))
    broken = data.replace(*swapped)
    status = figures.status(bolt.parse(broken, "db"))
    assert not status.structure.sound
    assert "not after the one before it" in status.structure.faults[0].reason or "beyond" in str(status.structure)
    assert [fault.page for fault in streamed(broken, 4096).structure.faults][:1] == [status.structure.faults[0].page]


def test_a_stored_freelist_is_held_against_the_tree() -> None:
    data = etcd_db.db({b"key": etcd_db.key_bucket(MANY[:50])})
    db = bolt.parse(data, "db")
    sound = with_freelist(data, db.meta, (2,))
    assert figures.status(bolt.parse(sound, "db")).structure.sound
    assert streamed(sound, 4096).structure.sound
    for wrong in ((), (2, 3), (2, 2), (9999,)):
        assert not figures.status(bolt.parse(with_freelist(data, db.meta, wrong), "db")).structure.sound
        assert not streamed(with_freelist(data, db.meta, wrong), 4096).structure.sound


def with_freelist(data: bytes, meta: bolt.Meta, free: tuple[int, ...]) -> bytes:
    number = meta.pages
    ids = b"".join(page.to_bytes(8, "little") for page in free)
    page = (bolt.HEADER.pack(number, bolt.FREELIST, len(free), 0) + ids).ljust(4096, b"\0")
    changed = meta._replace(freelist=number, pages=number + 1)
    metas = sorted(
        (amend.meta_page(changed._replace(txid=txid), txid % 2) for txid in (4, 5)), key=lambda page: page[:8]
    )
    return b"".join(metas) + data[8192:] + page
