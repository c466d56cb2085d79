from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from drtool.core.errors import Locked
from snapshots import lock
from snapshots.stores.directory import DirectoryStore
from snapshots.stores.store import whole

CLUSTER = "0123456789abcdef"
HOUR = timedelta(hours=1)


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path)


def test_one_holder_at_a_time(store: DirectoryStore) -> None:
    with lock.held(store, CLUSTER, lock.owner("cp-1", ("a",), HOUR)) as lease:
        assert lease.predecessors == ()
        with pytest.raises(Locked, match="cp-1"), lock.held(store, CLUSTER, lock.owner("cp-2", ("b",), HOUR)):
            pass
    with lock.held(store, CLUSTER, lock.owner("cp-2", ("b",), HOUR)) as lease:
        assert lease.predecessors == ()


def test_another_cluster_has_a_lock_of_its_own(store: DirectoryStore) -> None:
    mine, other = lock.owner("cp-1", ("a",), HOUR), lock.owner("cp-2", ("b",), HOUR)
    with lock.held(store, CLUSTER, mine), lock.held(store, "f" * 16, other):
        pass


def test_of_many_at_once_one_holds_it(store: DirectoryStore) -> None:
    start, over = threading.Barrier(8), threading.Event()
    holders: list[int] = []
    refused: list[int] = []

    def contend(number: int) -> None:
        start.wait()
        try:
            with lock.held(store, CLUSTER, lock.owner(f"cp-{number}", (), HOUR)):
                holders.append(number)
                over.wait(30)
        except Locked:
            refused.append(number)
            if len(refused) == 7:
                over.set()

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(holders), len(refused)) == (1, 7)


def left_by_a_dead_process(store: DirectoryStore) -> None:
    program = f"""
from datetime import timedelta
import os
from pathlib import Path
from snapshots import lock
from snapshots.stores.directory import DirectoryStore
me = lock.owner("cp-1", ("dead",), timedelta(hours=1))
context = lock.held(DirectoryStore(Path({str(store.root)!r})), {CLUSTER!r}, me)
context.__enter__().removing(("half",))
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_holder_whose_process_is_gone_is_passed_over_and_named(store: DirectoryStore) -> None:
    left_by_a_dead_process(store)
    with lock.held(store, CLUSTER, lock.owner("cp-1", ("b",), HOUR)) as lease:
        assert lease.predecessors == ("dead", "half")


def test_one_that_dies_before_it_has_cleaned_up_hands_all_of_it_on(store: DirectoryStore) -> None:
    left_by_a_dead_process(store)
    left_by_a_dead_process(store)
    with lock.held(store, CLUSTER, lock.owner("cp-1", ("b",), HOUR)) as lease:
        assert lease.predecessors == ("dead", "dead", "half", "half")
    with lock.held(store, CLUSTER, lock.owner("cp-1", ("b",), HOUR)) as lease:
        assert lease.predecessors == ()


def test_of_another_machine_nothing_is_proven_before_its_time_is_up(store: DirectoryStore) -> None:
    elsewhere = replace(lock.owner("cp-2", ("dead",), HOUR), boot="another machine")
    context = lock.held(store, CLUSTER, elsewhere)
    context.__enter__()
    with pytest.raises(Locked), lock.held(store, CLUSTER, lock.owner("cp-1", ("b",), HOUR)):
        pass
    (place,) = (store.root / CLUSTER / "lock").iterdir()
    long_ago = place.stat().st_mtime - 2 * 3600
    os.utime(place, (long_ago, long_ago))
    with lock.held(store, CLUSTER, lock.owner("cp-1", ("b",), HOUR)) as lease:
        assert lease.predecessors == ("dead",)
    assert not (store.root / CLUSTER / "clock").exists()


def test_a_lock_that_cannot_be_read_is_not_known_to_be_dead(store: DirectoryStore) -> None:
    store.put(f"{CLUSTER}/lock/00000003.json", b"what?")
    with pytest.raises(Locked, match="delete it"), lock.held(store, CLUSTER, lock.owner("cp-1", (), HOUR)):
        pass
    assert whole(store, f"{CLUSTER}/lock/00000003.json") == b"what?"


def test_a_process_id_used_again_is_another_process() -> None:
    me = lock.owner("cp-1", (), HOUR)
    assert not lock.ended(me)
    assert lock.ended(replace(me, started=me.started + 1))
    assert lock.ended(replace(me, released=True))
