"""The snapshot of a real API server 1.37 and what kubectl said of it, unpacked into a test's directory."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from snapshots import mvcc
from snapshots.registry import encryption
from snapshots.registry.objects import Registry

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


class Compared(NamedTuple):
    """Names of objects: equal to what kubectl said, not equal, in the db only, told only by kubectl."""

    equal: list[str]
    different: list[str]
    stored_only: list[str]
    told_only: list[str]


def compared(db: Path) -> Compared:
    """Every object of the db against kubectl's answer, managed fields and Secrets included."""
    told = {_name(body): body for body in truth() if not body["apiVersion"].startswith("events.k8s.io/")}
    found = Compared([], [], [], [])
    with mvcc.opened(db) as keyspace:
        secrets = encryption.parse(configuration(), "encryption.yaml")
        for each in Registry(keyspace.index(), str(db), secrets, managed=True).everything():
            said = told.pop(str(each), None)
            into = found.stored_only if said is None else found.equal if said == each.body else found.different
            into.append(str(each))
    return found._replace(told_only=list(told))


def _name(body: dict[str, Any]) -> str:
    namespace = body["metadata"].get("namespace")
    return f"{body['kind']} {namespace + '/' if namespace else ''}{body['metadata']['name']}"


def configuration() -> str:
    return (SHARED / "encryption.yaml").read_text()
