"""What a store's objects come to: one that cannot be read hides no other backup."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from drtool.cli import backups
from drtool.commands.fetch import Shelf
from drtool.core.errors import Unsound
from snapshots import catalog, inventory
from snapshots.catalog import Report
from snapshots.stores.directory import DirectoryStore
from snapshots.stores.store import StoreDenied
from tests.builders.nobody import as_nobody, reachable
from tests.snapshots.test_catalog import NOW, backup

GOOD, BAD = (backup(NOW).record for _ in range(2))


def _laid(directory: Path) -> DirectoryStore:
    store = DirectoryStore(directory)
    for one in (GOOD, BAD):
        store.put(f"{one.path}/{catalog.RECORD}", catalog.encode(one))
        for part in one.parts:
            store.put(f"{one.path}/{part.name}", b"x" * part.sealed_size)
    return store


def _link_to_nowhere_near(place: Path) -> None:
    place.symlink_to("/dev/zero")


def _link_to_itself(place: Path) -> None:
    place.symlink_to(place.name)


def _huge(place: Path) -> None:
    place.touch()
    os.truncate(place, 30 << 20)


@pytest.mark.parametrize("plant", [_link_to_nowhere_near, _link_to_itself, os.mkfifo, _huge])
def test_a_record_that_cannot_be_read_hides_no_other_backup(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    store = _laid(tmp_path)
    place = tmp_path / BAD.path / catalog.RECORD
    place.unlink()
    plant(place)
    found = inventory.read(store)
    assert [one.id for one in found.backups] == [GOOD.id]
    assert [path for path, _ in found.broken] == [BAD.path]


def test_a_store_that_lets_no_record_be_read_says_so() -> None:
    with reachable() as directory:
        store = _laid(directory)
        for place in directory.rglob("*"):
            place.chmod(0o755 if place.is_dir() else 0o600 if os.geteuid() == 0 else 0)
        with as_nobody(), pytest.raises(StoreDenied, match="Permission denied"):
            inventory.read(store)


def test_where_none_is_believed_the_newest_says_why(tmp_path: Path) -> None:
    store = _laid(tmp_path)
    for one in (GOOD, BAD):
        store.put(f"{one.path}/{one.db.name}", b"cut short, or what was it")
    with pytest.raises(Unsound, match="is 25 bytes, not 1"):
        Shelf(store).choose()


def _left(store: DirectoryStore, minute: int, good: bool, body: bytes) -> None:
    at = NOW + timedelta(minutes=minute)
    inventory.report(store, GOOD, Report("verify", at, good), body)


@pytest.mark.parametrize("body", [b'{"schemaVersion": 1, "node": "cp-1", "opened": false, "problem": ""}', b"", b"{}"])
def test_how_deep_a_look_went_is_read_where_an_earlier_one_found_it_bad(tmp_path: Path, body: bytes) -> None:
    store = _laid(tmp_path)
    _left(store, 0, False, b'{"schemaVersion": 1, "node": "cp-1", "opened": true, "problem": "page 3"}')
    _left(store, 1, True, body)
    assert [one.good for one in inventory.read(store).backups if one.id == GOOD.id] == [False]
    _left(store, 2, True, b'{"schemaVersion": 1, "node": "cp-1", "opened": true, "problem": ""}')
    assert [one.good for one in inventory.read(store).backups if one.id == GOOD.id] == [True]


def test_a_list_names_the_verdict_that_stands(tmp_path: Path) -> None:
    store = _laid(tmp_path)
    _left(store, 0, False, b'{"opened": true}')
    _left(store, 1, True, b'{"opened": false}')
    (found,) = (one for one in inventory.read(store).backups if one.id == GOOD.id)
    assert backups._proof(found) == f"{NOW:%Y-%m-%d %H:%M} BAD"
