from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from drtool.commands import prune
from drtool.commands.fetch import Shelf
from drtool.config import Config, Retention, Seconds
from drtool.core.errors import NotFound
from snapshots import catalog
from snapshots.catalog import Part, Record
from snapshots.scratch_s3 import Server
from snapshots.stores.directory import DirectoryStore
from snapshots.stores.s3 import connect
from snapshots.stores.store import Store, StoreDenied, StoreUnavailable
from tests.commands.backing import s3_config
from tests.fakes.fault_proxy import Fault, fault_proxy
from tests.snapshots.test_catalog import backup

NOW = datetime.now(UTC)
STRICT = Config(retention=Retention(2, 0, 0, 0, 0, 1, Seconds(0)))


def stored(store: Store, at: datetime, verified: bool = True, cluster: str = "0" * 15 + "1") -> str:
    record: Record = replace(backup(at, verified, cluster=cluster).record, db=Part("db.zst", 1, "aa", 3, "bb"))
    store.put(f"{record.path}/db.zst", b"abc")
    store.put(f"{record.path}/record.json", catalog.encode(record))
    return record.id


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path)


def test_a_dry_run_names_exactly_what_a_run_removes(store: DirectoryStore) -> None:
    names = [stored(store, NOW - timedelta(days=days)) for days in range(5)]
    shelf = Shelf(store)
    planned = prune.plan(shelf, STRICT)
    told = [one.id for decision in planned.decisions.values() for one in decision.drop]
    assert told == names[:1:-1]
    assert len(shelf.inventory().backups) == 5
    assert [one.id for one in prune.carry_out(shelf, planned, STRICT).removed] == told
    assert [one.id for one in shelf.inventory().backups] == names[:2]
    assert not any(name in str(place) for place in store.root.rglob("*") for name in told)


def test_nothing_goes_on_an_empty_or_failed_listing(store: DirectoryStore) -> None:
    with pytest.raises(NotFound, match="nothing is removed"):
        prune.plan(Shelf(store), STRICT)


def test_a_listing_that_fails_half_way_removes_nothing(s3_server: Server) -> None:
    config = s3_config(s3_server)
    prefix = config.url.partition("backups/")[2]
    direct = connect(s3_server.bucket, prefix, config, 10, s3_server.credentials)
    for days in range(4):
        stored(direct, NOW - timedelta(days=days))
    for fault, error in ((Fault.ERROR, StoreUnavailable), (Fault.REFUSED, StoreDenied), (Fault.CUT, StoreUnavailable)):
        with fault_proxy(s3_server.endpoint, lambda _, fault=fault: fault) as proxy:
            through = connect(
                s3_server.bucket, prefix, replace(config, endpoint=proxy.endpoint), 5, s3_server.credentials
            )
            with pytest.raises(error):
                prune.plan(Shelf(through), STRICT)
    assert len(Shelf(direct).inventory().backups) == 4


def test_what_the_store_holds_fast_is_reported_and_not_fatal(s3_server: Server) -> None:
    config = s3_config(s3_server)
    prefix = config.url.partition("backups/")[2]
    direct = connect(s3_server.bucket, prefix, config, 10, s3_server.credentials)
    names = [stored(direct, NOW - timedelta(days=days)) for days in range(4)]

    def holding(request: object) -> Fault:
        path, method = getattr(request, "path", ""), getattr(request, "method", "")
        return Fault.REFUSED if method == "DELETE" and names[3] in path else Fault.NONE

    with fault_proxy(s3_server.endpoint, holding) as proxy:
        through = connect(s3_server.bucket, prefix, replace(config, endpoint=proxy.endpoint), 5, s3_server.credentials)
        done = prune.carry_out(Shelf(through), prune.plan(Shelf(through), STRICT), STRICT)
    assert [one.id for one in done.removed] == [names[2]]
    assert [one.id for one, _ in done.held] == [names[3]]


def test_a_record_that_cannot_be_believed_is_left_alone(store: DirectoryStore) -> None:
    names = [stored(store, NOW - timedelta(days=days)) for days in range(4)]
    (place,) = store.root.glob(f"*/{names[3]}/record.json")
    place.write_bytes(b"{}")
    planned = prune.plan(Shelf(store), STRICT)
    prune.carry_out(Shelf(store), planned, STRICT)
    assert len(planned.broken) == 1
    assert place.exists()


def test_verified_is_what_counts(store: DirectoryStore) -> None:
    old = stored(store, NOW - timedelta(days=30))
    for days in range(5):
        stored(store, NOW - timedelta(days=days), verified=False)
    planned = prune.plan(Shelf(store), STRICT)
    (decision,) = planned.decisions.values()
    assert decision.drop == ()
    assert old in decision.keep


def test_pruning_needs_the_lock_only_where_something_goes(store: DirectoryStore) -> None:
    stored(store, NOW)
    assert prune.carry_out(Shelf(store), prune.plan(Shelf(store), STRICT), STRICT).removed == ()
    assert not list(store.root.glob("*/lock"))
