"""The commands around backups as cron meets them: exit statuses, stdout for data, stderr for the rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.live_node import LiveNode, live_node
from tests.commands.backing import IDENTITY, RECIPIENT


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveNode]:
    with live_node(tmp_path_factory.mktemp("node") / "root") as live:
        live.fill(100)
        yield live


@pytest.fixture
def at(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    (tmp_path / "identity.txt").write_text(f"{IDENTITY}\n")
    return tmp_path


def drtool(at: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("DRTOOL_", "AWS_"))}
    settings = {"DRTOOL_STORE_URL": (at / "store").as_uri(), "DRTOOL_SPOOL_DIRECTORY": str(at / "spool")}
    return subprocess.run(
        [sys.executable, "-c", "from drtool.cli import main; main()", *arguments],
        env={**inherited, **settings, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def backed_up(at: Path, node: LiveNode, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return drtool(at, "backup", "--root", str(node.directory), *more, **environment)


def test_the_whole_round(at: Path, node: LiveNode) -> None:
    done = backed_up(at, node, "--recipient", RECIPIENT, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert next(iter(told)) == "schemaVersion"
    assert told["verified"]
    assert told["complete"]
    assert told["encrypted"]
    name = told["backup"]["id"]

    listed = drtool(at, "backups", "-o", "json")
    assert [one["id"] for one in json.loads(listed.stdout)["backups"]] == [name]
    assert drtool(at, "backups", "--stale", "26h").returncode == 0

    opened = drtool(at, "verify", name, "--identity", str(at / "identity.txt"))
    assert opened.returncode == 0
    assert "opened, structure sound" in opened.stdout
    unopened = drtool(at, "verify")
    assert unopened.returncode == 0
    assert "not opened" in unopened.stderr

    assert "dry run: nothing was removed" in drtool(at, "prune", "--dry-run").stdout
    target = at / "restored"
    restored = drtool(at, "restore", name, "--to", str(target), "--identity", str(at / "identity.txt"))
    assert restored.returncode == 0, restored.stderr
    assert name in restored.stdout
    assert (target / "member/snap/db").is_file()


def test_what_latest_passes_over_is_told_by_every_command(at: Path, node: LiveNode) -> None:
    names = []
    for _ in range(2):
        done = backed_up(at, node, "--recipient", RECIPIENT, "-o", "json")
        names.append(json.loads(done.stdout)["backup"]["id"])
        time.sleep(1)  # names tell seconds
    (lost,) = (at / "store").glob(f"*/{names[1]}/db.zst.age")
    lost.unlink()
    opening = ("--identity", str(at / "identity.txt"))
    for arguments in (
        ("verify",),
        ("restore", "latest", "--to", str(at / "restored")),
        ("get", "namespaces", "--from", "latest"),
    ):
        done = drtool(at, *arguments, *opening)
        assert done.returncode == 0, done.stderr
        assert done.stderr.startswith(f"drtool: latest is {names[0]}, not the newer {names[1]}: ")
        assert "db.zst.age is gone" in done.stderr
        assert "newer" not in done.stdout


def test_a_ping_that_does_not_arrive_is_told_and_changes_nothing(at: Path, node: LiveNode) -> None:
    lost = {"DRTOOL_PING_URL": "http://127.0.0.1:1/token"}
    done = backed_up(at, node, "--recipient", RECIPIENT, **lost)
    assert (done.returncode, done.stderr) == (0, "drtool: no ping: 127.0.0.1: Connection refused\n")
    failed = backed_up(at, node, "--recipient", RECIPIENT, "--endpoint", "http://127.0.0.1:1", **lost)
    assert failed.returncode == 1
    assert failed.stderr.startswith("drtool: no ping: 127.0.0.1: Connection refused\ndrtool: ")


def test_one_summary_line_and_a_clear_line_without_recipients(at: Path, node: LiveNode) -> None:
    done = backed_up(at, node)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert "verified" in done.stdout
    assert done.stderr == "drtool: no recipient is configured: this backup is NOT encrypted\n"


def test_incomplete_is_loud(at: Path, tmp_path: Path) -> None:
    with live_node(tmp_path / "root") as node:
        node.root.locate("/etc/kubernetes/pki/etcd/ca.key").unlink()
        done = backed_up(at, node, "--recipient", RECIPIENT)
    assert done.returncode == 5
    assert "INCOMPLETE" in done.stdout
    assert "drtool: incomplete: /etc/kubernetes/pki/etcd/ca.key: No such file or directory" in done.stderr


def test_a_store_that_is_down(at: Path, node: LiveNode) -> None:
    (at / "store").rmdir()
    done = backed_up(at, node, "--recipient", RECIPIENT)
    assert done.returncode == 5
    assert "waits in the spool" in done.stdout
    assert "the store is down" in done.stderr
    without = backed_up(at, node, "--recipient", RECIPIENT, DRTOOL_SPOOL_DIRECTORY="")
    assert without.returncode == 10
    assert "mount the disk" in without.stderr
    assert drtool(at, "backups").returncode == 10


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["verify", "no-such"], 10, "holds no backup no-such"),
        (["verify"], 10, "no verified backup"),
        (["prune"], 10, "nothing is removed"),
        (["backups", "--stale", "1h"], 4, "stale: the store holds no backup"),
        (["backups", "--stale", "soon"], 2, "no duration"),
        (["backups", "--store", "ftp://x"], 2, "neither file"),
        (["backups", "--store", "s3://key:hush@bucket"], 2, "credentials"),
        (["backups", "--config", "/no/such"], 2, "No such file"),
        (["backup", "--recipient", "age1nonsense"], 2, "no age recipient"),
        (["backup", "--root", "/nonexistent"], 3, "not a directory"),
        (["backup", "--root", "/dev/fd"], 3, "no etcd endpoint"),
    ],
)
def test_exit_statuses(at: Path, arguments: list[str], status: int, problem: str) -> None:
    done = drtool(at, *arguments)
    assert done.returncode == status, done.stderr
    assert problem in done.stderr
    assert "Traceback" not in done.stderr
    assert "hush" not in done.stderr + done.stdout


def test_an_etcd_that_is_not_there(at: Path) -> None:
    done = drtool(at, "backup", "--endpoint", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert list((at / "store").iterdir()) == []


def test_the_configuration_is_shown_and_tried(at: Path) -> None:
    example = drtool(at, "config", "example")
    (at / "config.yaml").write_text(example.stdout)
    shown = drtool(at, "config", "show", "-o", "json", "--config", str(at / "config.yaml"))
    assert json.loads(shown.stdout)["store"]["url"] == (at / "store").as_uri()
    tried = drtool(at, "config", "check", "-o", "json", DRTOOL_RETENTION_KEEPLAST="9")
    assert tried.returncode == 0
    assert json.loads(tried.stdout)["good"]
    assert json.loads(tried.stdout)["unknownVariables"] == ["DRTOOL_RETENTION_KEEPLAST"]
    told = "drtool: DRTOOL_RETENTION_KEEPLAST in the environment is no setting of drtool: it does nothing\n"
    assert tried.stderr == told
    (at / "store").rmdir()
    failed = drtool(at, "config", "check")
    assert failed.returncode == 1
    assert "mount the disk" in failed.stderr
