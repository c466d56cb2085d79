"""The program's frame: every error is one line with a hint and its exit status; no traceback ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from drtool.core import errors
from tests.builders import etcd_db
from tests.builders.tree import laid
from tests.small_disk import small_disk

RUN = [sys.executable, "-m", "drtool.cli"]


def drtool(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *words], capture_output=True, text=True, timeout=120, **more)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--version"], 0, ""),
        (["check", "--root", "/nonexistent"], 3, "drtool: /nonexistent is not a directory"),
        (["upgrade-plan", "--to", "1.37", "--root", "/nonexistent"], 3, "drtool: /nonexistent is not a directory"),
        (["readdress", "--root", "/dev/null"], 3, "drtool: /dev/null is not a directory"),
        (["restore", "absent.db", "--to", "new"], 2, "drtool: absent.db: no such file, and no store is configured"),
        (["ls", "--from", "absent.db"], 2, "drtool: absent.db: no such file, and no store is configured"),
        (["check", "--at", "9999-12-31T23:59:59-10:00"], 2, "is no time such as"),
        (["fix", "--at", "yesterday"], 2, "yesterday is no time such as"),
        (["check", "--at", "yesterday"], 2, "yesterday is no time such as"),
        (["nosuch"], 2, "No such command"),
        ([], 2, "Usage: drtool"),
    ],
)
def test_exit_statuses(words: list[str], status: int, said: str) -> None:
    done = drtool(*words, stdin=subprocess.DEVNULL)
    assert done.returncode == status
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_has_help_with_an_example() -> None:
    import importlib
    import pkgutil

    import drtool.cli

    for found in pkgutil.iter_modules(drtool.cli.__path__):
        if not found.name.startswith("_"):
            command = importlib.import_module(f"drtool.cli.{found.name}").command
            assert command.help, found.name
            assert "Example: drtool" in (command.epilog or ""), found.name


def test_the_statuses_are_those_of_the_contract() -> None:
    known = {
        errors.DrtoolError: 1,
        errors.UsageError: 2,
        errors.CannotTell: 3,
        errors.Unsound: 4,
        errors.NotVerified: 5,
        errors.NotFound: 10,
        errors.Locked: 11,
        errors.CannotOpen: 12,
        errors.Refused: 20,
        errors.TakenBack: 21,
        errors.HalfDone: 22,
    }
    assert {kind: kind.exit_status for kind in known} == known


def test_data_goes_to_stdout_and_a_closed_pipe_is_no_crash(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    command = " ".join(RUN) + f" check --root {tree.root} -o json | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.stdout == "{"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("stderr", [">&-", ">/dev/full"])
def test_the_exit_status_stands_where_nobody_can_be_told(stderr: str, tmp_path: Path) -> None:
    for words, status in (("status absent", 10), ("status", 2), ("explain cert-expired >&- <&-", 0)):
        command = " ".join(RUN) + f" {words} 2{stderr}"
        assert subprocess.run(["bash", "-c", command], cwd=tmp_path, timeout=120).returncode == status


def test_a_name_of_any_bytes_ends_no_command_and_sends_nothing_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff.db")).write_bytes(etcd_db.snapshot({b"key": {}, b"meta": {}}))
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    done = drtool("status", os.fsdecode(b"a\xff.db"), "-o", "json", cwd=tmp_path, env=environment)
    assert json.loads(done.stdout)["file"] == os.fsdecode(b"a\xff.db")
    absent = drtool("status", "a\n\x1b[2Jb", cwd=tmp_path)
    assert absent.stderr == "drtool: a\\n\\x1b[2Jb: no such file\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(number: signal.Signals, status: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*RUN, "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_and_nothing_half_written_stays(tmp_path: Path) -> None:
    tree = laid(tmp_path / "node")
    with small_disk(tmp_path / "small", "4k") as small:
        done = drtool("collect", "--root", str(tree.root), "-f", str(small / "bundle.tar.gz"))
        assert done.returncode == 1
        assert done.stderr.startswith(f"drtool: {small}/bundle.tar.gz: No space left on device\n  free some space")
        assert list(small.iterdir()) == []


BROKEN = """
import sys
from drtool import cli
def command(): raise RecursionError("too deep")
cli.group.get_command = lambda ctx, name: cli.click.Command("broken", callback=command)
sys.argv = ["drtool", "broken"]
cli.main()
"""


def test_a_fault_of_drtool_is_one_line_and_all_of_it_when_asked() -> None:
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("drtool: a fault of drtool itself: RecursionError: too deep (<string>:4)\n  please")
    assert "Traceback" not in done.stderr
    asked = {**os.environ, "DRTOOL_TRACEBACK": "1"}
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, timeout=120, env=asked)
    assert "Traceback" in done.stderr
