"""The real snapshots beside this project, unpacked once a run; tests skip where they are absent."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[2].parent / "shared" / "snapshots"
LINES = ("3.4", "3.5", "3.6", "3.7")
NAMES = (*(f"etcd-{line}" for line in LINES), "real-1.37")


@functools.cache
def data(name: str) -> bytes:
    for file in ("snapshot.db.gz", "real.db.gz"):
        path = SHARED / name / file
        if path.is_file():
            return gzip.decompress(path.read_bytes())
    pytest.skip(f"no real snapshots at {SHARED}")


def load(name: str, file: str) -> dict[str, Any]:
    path = SHARED / name / file
    if not path.is_file():
        pytest.skip(f"no {path}")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def keys(name: str) -> list[Any]:
    path = SHARED / name / "keys.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path}")
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@pytest.fixture(params=NAMES)
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """(name, path) of each real snapshot."""
    path = tmp_path / f"{request.param}.db"
    path.write_bytes(data(request.param))
    return request.param, path
