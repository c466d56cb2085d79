"""The snapshot of a real API server 1.37 and what kubectl said of it, unpacked into a test's directory."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[3] / "shared" / "snapshots" / "real-1.37"

needed = pytest.mark.skipif(not SHARED.is_dir(), reason="the snapshot of a real API server (../shared) is not here")


def database(into: Path) -> Path:
    path = into / "real.db"
    path.write_bytes(gzip.decompress((SHARED / "real.db.gz").read_bytes()))
    return path


def truth() -> list[dict[str, Any]]:
    """Every object of every `kubectl get RESOURCE -A -o json --show-managed-fields`."""
    objects: list[dict[str, Any]] = []
    with tarfile.open(SHARED / "truth.tar.gz") as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if content is not None:
                objects += json.load(content)["items"]
    return objects


def configuration() -> str:
    return (SHARED / "encryption.yaml").read_text()
