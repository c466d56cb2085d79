"""Drills bring a backup up under a real etcd; a bad backup gives a verdict, never a crash, and nothing stays behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import yaml

from drtool.commands.backup import backup
from drtool.commands.drill import Wish, choose, drill, past
from drtool.commands.drill_report import html, openmetrics
from drtool.commands.fetch import Shelf, db_pieces, shelf
from drtool.commands.fleet import Target, fleet, job
from drtool.commands.restore import Wanted, restore
from drtool.commands.scratch_node import ScratchNode, lay_scratch
from drtool.config import Config, Spool, StoreConfig
from drtool.core.errors import NotFound, UsageError
from snapshots import seal
from tests.small_disk import small_disk


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


def test_a_backup_of_what_was_restored_before(held: Shelf, config: Config, tmp_path: Path, scratch_space: Path) -> None:
    """The bump of a restore leaves a mark in the db that counts as a key, and that etcd never shows."""
    again = lay_scratch(tmp_path / "cp-2", name="cp-2")
    again.data_dir.rmdir()
    restore(db_pieces(held, choose(held, "")), again.data_dir, Wanted(name="cp-2", peer_urls=again.peer_url))
    with again.etcd():
        record = backup(config, held, again.root).record
    assert record.keys_by_prefix[""] == 1
    found = drill(held, choose(held, record.id), Wish())
    assert found.good, found.failed
    assert "300 keys in 3 prefixes, as recorded" in found.proven


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
    assert found.status == 4
    with pytest.raises(NotFound, match="no verified backup"):
        choose(held, "")
    ahead = msgspec.structs.replace(chosen.record, taken_at=datetime.now(UTC) + timedelta(days=1))
    dated = drill(held, replace(chosen, record=ahead, received=None), Wish())
    assert dated.rpo == 0
    assert dated.not_proven[-2].startswith("RPO: ")


def test_a_wrong_key_fails_at_its_step(held: Shelf, scratch_space: Path) -> None:
    other, _ = seal.throwaway()
    found = drill(Shelf(held.store, identities=(other,)), choose(held, ""), Wish())
    assert not found.good
    assert found.failed.startswith("fetch, open, write: ")
    assert found.status == 12
    assert choose(held, "").good


def test_a_program_that_is_no_etcd(held: Shelf, scratch_space: Path) -> None:
    found = drill(held, choose(held, ""), Wish(etcd="/bin/true"))
    assert not found.good
    assert "/bin/true is no etcd" in found.failed
    assert found.status == 1
    assert choose(held, "").good


def wrapper(place: Path, body: str, version: str = "3.5.1") -> str:
    """A program that says it is that etcd, and then does `body`."""
    place.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "etcd Version: {version}"; exit; fi\n{body}\n')
    place.chmod(0o700)
    return str(place)


def test_a_line_of_etcd_that_cannot_boot_the_data(held: Shelf, tmp_path: Path, scratch_space: Path) -> None:
    found = drill(held, choose(held, ""), Wish(etcd=wrapper(tmp_path / "etcd", "exit 1", "3.9.0")))
    assert found.failed.startswith("boot etcd: etcd 3.9 cannot boot a db of etcd 3.5"), found.failed
    assert list(scratch_space.iterdir()) == []


def test_an_etcd_that_ends_at_once(held: Shelf, tmp_path: Path, scratch_space: Path) -> None:
    found = drill(held, choose(held, ""), Wish(etcd=wrapper(tmp_path / "etcd", "echo no libc >&2; exit 3")))
    assert found.failed.startswith("boot etcd: etcd ended with status 3: no libc"), found.failed
    assert list(scratch_space.iterdir()) == []
    assert choose(held, "").good


def test_an_etcd_that_will_not_have_the_data(held: Shelf, tmp_path: Path, scratch_space: Path) -> None:
    found = drill(held, choose(held, ""), Wish(etcd=wrapper(tmp_path / "etcd", "echo panic: page 7 >&2; exit 2")))
    assert found.status == 4
    with pytest.raises(NotFound, match="no verified backup"):
        choose(held, "")


def test_a_port_that_was_taken_meanwhile(held: Shelf, scratch_space: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr("snapshots.scratch.free_ports", lambda count: [taken.getsockname()[1]] * count)
        found = drill(held, choose(held, ""), Wish())
    assert found.failed.startswith("boot etcd: etcd ended with status 1"), found.failed
    assert "address already in use" in found.failed
    assert choose(held, "").good
    assert list(scratch_space.iterdir()) == []


def test_no_space(held: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_disk(tmp_path / "small", "96k") as small:
        monkeypatch.setattr("tempfile.tempdir", str(small))
        found = drill(held, choose(held, ""), Wish())
        assert found.failed.startswith("fetch, open, write: "), found.failed
        assert "No space left on device" in found.failed
        assert choose(held, "").good
        assert list(small.iterdir()) == []


def test_kept_where_that_was_asked_for(held: Shelf, scratch_space: Path) -> None:
    found = drill(held, choose(held, ""), Wish(keep=True))
    assert list(scratch_space.iterdir()) == [Path(found.kept)]
    assert (Path(found.kept) / "etcd/member/snap/db").is_file()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(held: Shelf, config: Config, tmp_path: Path, number: signal.Signals, status: int) -> None:
    """While it waits for an etcd that does not come up; the program is the drill's own child."""
    place, told = tmp_path / "scratch", tmp_path / "pid"
    place.mkdir()
    program = wrapper(tmp_path / "etcd", f"echo $$ >{told}.part; mv {told}.part {told}; exec sleep 600")
    environment = {
        **os.environ,
        "TMPDIR": str(place),
        "DRTOOL_STORE_URL": config.store.url,
        "DRTOOL_IDENTITIES": config.identities[0],
    }
    command = [sys.executable, "-m", "drtool.cli", "drill", "--etcd", program]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        while not told.exists() and run.poll() is None:
            time.sleep(0.05)
        run.send_signal(number)
        out, said = run.communicate(timeout=60)
    assert run.returncode == status, said
    assert "interrupted during: boot etcd; nothing of it is left" in said
    assert out == ""
    assert not Path(f"/proc/{told.read_text().strip()}").exists()
    assert list(place.iterdir()) == []


def test_the_report_is_one_page_that_fetches_nothing(held: Shelf, scratch_space: Path) -> None:
    found = drill(held, choose(held, ""), Wish())
    found = msgspec.structs.replace(found, not_proven=("<script>alert(1)</script>",))
    page = html(found, past(held, found.cluster))
    assert "PROVEN" in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "src=" not in page
    assert "href=" not in page
    assert page.count("<rect") == len(found.phases) + 2
    bad = html(msgspec.structs.replace(found, good=False, failed="boot etcd: it ended"), ())
    assert "FAILED at boot etcd: it ended" in bad


def test_the_metrics_are_openmetrics_without_timestamps(held: Shelf, scratch_space: Path) -> None:
    text = openmetrics(drill(held, choose(held, ""), Wish()))
    assert text.endswith("# EOF\n")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == 5
    assert all(len(line.split()) == 2 for line in lines)
    assert any(line.startswith("drtool_drill_last_success{") and line.endswith(" 1.0") for line in lines)


def test_the_fleet_knows_who_is_late(held: Shelf, scratch_space: Path) -> None:
    target = Target(timedelta(hours=26), timedelta(days=8))
    now = datetime.now(UTC)
    (standing,) = fleet(held, target, now)
    assert standing.late == ("never drilled",)
    drill(held, choose(held, ""), Wish())
    assert fleet(held, target, datetime.now(UTC))[0].late == ()
    late = fleet(held, target, now + timedelta(days=30))[0].late
    assert late == ("newest verified backup is 30 d old", "last good drill is 30 d old")


def test_the_job_drills_one_cluster_an_index(held: Shelf) -> None:
    standings = fleet(held, Target(timedelta(hours=1), timedelta(hours=1)), datetime.now(UTC))
    config, manifest = yaml.safe_load_all(job(standings, "registry.example/drtool:0.1.0", "drtool", 4))
    assert config["data"]["clusters"].split() == [standings[0].cluster]
    assert manifest["spec"]["completions"] == 1
    assert manifest["spec"]["completionMode"] == "Indexed"
    assert "$((JOB_COMPLETION_INDEX + 1))" in manifest["spec"]["template"]["spec"]["containers"][0]["args"][0]
    with pytest.raises(NotFound):
        job((), "image", "drtool", 1)
    with pytest.raises(UsageError):
        job(standings, "no image", "drtool", 1)


def test_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    empty = shelf(Config(store=StoreConfig(url=f"file://{tmp_path}/none")))
    for which in ("", "oldest", "random"):
        with pytest.raises(NotFound):
            choose(empty, "", which=which)
