"""What a command does not load: a check of a tree at 3 a.m. must not wait for an S3 client."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.tree import laid

HEAVY = (
    "textual",
    "boto3",
    "botocore",
    "grpc",
    "etcd3",
    "google.protobuf",
    "http.client",
    "ssl",
    "asyncio",
    "hypothesis",
)
SCRIPT = """
import sys
sys.argv = ["drtool", *sys.argv[1:]]
import drtool.cli
try:
    drtool.cli.main()
finally:
    loaded = [name for name in {heavy!r} if name in sys.modules]
    print("loaded:", *loaded, file=sys.stderr)
"""


def loaded_by(*words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(heavy=HEAVY), *words], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    [line] = [line for line in done.stderr.splitlines() if line.startswith("loaded:")]
    return line.split()[1:]


def test_a_check_of_a_tree_loads_nothing_heavy(tmp_path: Path) -> None:
    assert loaded_by("check", "--root", str(laid(tmp_path).root), "-o", "json") == []


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("collect", "--help"), ("check", "--help")])
def test_help_and_version_load_nothing_heavy(words: tuple[str, ...]) -> None:
    assert not set(loaded_by(*words)) & {"textual", "boto3", "botocore", "grpc", "etcd3"}
