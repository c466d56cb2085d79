"""A db is copied while nobody commits to it."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from drtool.core.errors import Unsound
from snapshots.mvcc import keyspace
from snapshots.still import held_still
from snapshots.survey import survey
from tests.etcd_server import EtcdServer, encode, find_etcd

LARGEST = 256 << 20


def test_a_servers_db_is_whole_at_every_moment_while_it_is_written(tmp_path: Path) -> None:
    with EtcdServer(find_etcd(), tmp_path, ("--backend-batch-interval=1ms", "--backend-batch-limit=20")) as server:
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                server.call("kv/put", {"key": encode(b"k%d" % (number % 50)), "value": encode(b"v" * 700)})

        writer = threading.Thread(target=write)
        writer.start()
        try:
            revisions: list[int] = []
            end = time.monotonic() + 60  # by then the slowest machine has written something
            while len(revisions) < 15 or (revisions[-1] == revisions[0] and time.monotonic() < end):
                with held_still(server.data_dir / "member/snap/db", LARGEST) as bolt:
                    survey(bolt)
                    revisions.append(keyspace(bolt).last().main)
        finally:
            stop.set()
            writer.join()
    assert revisions == sorted(revisions)
    assert revisions[-1] > revisions[0]


def test_what_is_too_large_or_no_db_is_refused(tmp_path: Path) -> None:
    (tmp_path / "db").write_bytes(b"x" * 20_000)
    with pytest.raises(Unsound, match="too large"), held_still(tmp_path / "db", 10_000):
        pass
    with pytest.raises(Unsound, match="neither of the two meta pages"), held_still(tmp_path / "db", LARGEST):
        pass
