"""The disk is full at every write: one clear line, nothing half written, nothing listed that is not whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders.live_node import LiveNode
from tests.commands.backing import RECIPIENT

LIMITS = (0, 1, 50, 200, 1000, 20_000, 1 << 20, 9 << 20, 20 << 20)


LIMITED = """
import resource, sys
from drtool.cli import main
size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
main()
"""


def limited(size: int, node: LiveNode, directory: Path, spool: str) -> subprocess.CompletedProcess[bytes]:
    """`drtool backup` that can make no file larger than `size` bytes (EFBIG, handled as ENOSPC is)."""
    options = ["--root", str(node.directory), "--store", (directory / "store").as_uri(), "--recipient", RECIPIENT]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("DRTOOL_")}
    return subprocess.run(
        [sys.executable, "-B", "-c", LIMITED, str(size), "backup", *options, "-o", "json"],
        env={**environment, "DRTOOL_SPOOL_DIRECTORY": spool},
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("size", LIMITS)
@pytest.mark.parametrize("spooling", [False, True])
def test_a_full_disk_leaves_nothing_half(node: LiveNode, tmp_path: Path, size: int, spooling: bool) -> None:
    (tmp_path / "store").mkdir()
    done = limited(size, node, tmp_path, str(tmp_path / "spool") if spooling else "")
    errors = done.stderr.decode()
    assert done.returncode == 1, errors
    assert "Traceback" not in errors
    assert "File too large" in errors
    left = {place.name for place in tmp_path.rglob("*") if place.is_file() and place.parent.name != "lock"}
    assert left <= {"probed.json", ".lock"}

    whole = limited(-1, node, tmp_path, "")
    assert whole.returncode == 0, whole.stderr.decode()
    record = json.loads(whole.stdout)["backup"]
    assert [place.parent.name for place in tmp_path.rglob("record.json")] == [record["id"]]
