"""Drills bring a backup up under a real etcd; a bad backup gives a verdict, never a crash, and nothing stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from drtool.commands.backup import backup
from drtool.commands.drill import Wish, choose, drill
from drtool.commands.fetch import Shelf, shelf
from drtool.commands.scratch_node import ScratchNode, lay_scratch
from drtool.config import Config, Spool, StoreConfig
from drtool.core.errors import NotFound
from snapshots import seal


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScratchNode]:
    made = lay_scratch(tmp_path_factory.mktemp("drill") / "cp-1")
    with made.etcd():
        made.fill(300)
        yield made


@pytest.fixture
def config(tmp_path: Path) -> Config:
    identity, recipient = seal.throwaway()
    (tmp_path / "store").mkdir()
    key = tmp_path / "identity"
    key.touch(0o600)
    key.write_text(f"{identity}\n")
    return Config(
        store=StoreConfig(url=f"file://{tmp_path}/store"),
        recipients=(recipient,),
        identities=(str(key),),
        spool=Spool(directory=""),
    )


@pytest.fixture
def held(node: ScratchNode, config: Config) -> Shelf:
    made = shelf(config)
    assert backup(config, made, node.root).good
    return made


@pytest.fixture
def scratch_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


def test_a_good_backup_is_proven(held: Shelf, scratch_space: Path) -> None:
    found = drill(held, choose(held, ""), Wish())
    assert found.good, found.failed
    assert found.etcd == "3.5.1"
    assert "300 keys in 3 prefixes, as recorded" in found.proven
    assert any("API server" in line for line in found.not_proven)
    assert [phase.name for phase in found.phases] == ["fetch, open, write", "node bundle", "boot etcd", "compare"]
    assert found.rpo >= 0
    assert list(scratch_space.iterdir()) == []


def test_the_store_learns_of_it(held: Shelf, scratch_space: Path) -> None:
    chosen = choose(held, "", which="oldest")
    drill(held, chosen, Wish())
    report = choose(held, "", which="random").last("drill")
    assert report is not None
    assert report.good


def test_a_damaged_backup_fails_at_its_step(held: Shelf, tmp_path: Path, scratch_space: Path) -> None:
    chosen = choose(held, "")
    db = tmp_path / "store" / chosen.record.path / chosen.record.db.name
    data = bytearray(db.read_bytes())
    data[len(data) // 2] ^= 1
    db.chmod(0o600)
    db.write_bytes(data)
    found = drill(held, chosen, Wish())
    assert not found.good
    assert found.failed.startswith("fetch, open, write: ")
    assert list(scratch_space.iterdir()) == []


def test_a_wrong_key_fails_at_its_step(held: Shelf, scratch_space: Path) -> None:
    other, _ = seal.throwaway()
    found = drill(Shelf(held.store, identities=(other,)), choose(held, ""), Wish())
    assert not found.good
    assert found.failed.startswith("fetch, open, write: ")


def test_a_program_that_is_no_etcd(held: Shelf, scratch_space: Path) -> None:
    found = drill(held, choose(held, ""), Wish(etcd="/bin/true"))
    assert not found.good
    assert "/bin/true is no etcd" in found.failed


def test_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    empty = shelf(Config(store=StoreConfig(url=f"file://{tmp_path}/none")))
    for which in ("", "oldest", "random"):
        with pytest.raises(NotFound):
            choose(empty, "", which=which)
