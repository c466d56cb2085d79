"""Makes a large etcd snapshot with a real etcd: `python -m bench.make_db --megabytes 774 OUT`.

Two shapes: `kubernetes` (objects of some kB, some rewritten, as an API server leaves them) and `small` (many short
values). The server runs on loopback without fsync and is ended by its process id.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.etcd_server import EtcdServer, find_etcd

RESOURCES = ("pods", "configmaps", "secrets", "events", "leases", "replicasets", "endpointslices", "services/specs")
BATCH = 100


def key(number: int) -> bytes:
    return f"/registry/{RESOURCES[number % len(RESOURCES)]}/ns-{number % 397}/object-{number:08d}".encode()


def value(number: int, small: bool) -> bytes:
    chance = random.Random(number)  # noqa: S311 - the same file every time, not a secret
    size = chance.randint(40, 400) if small else int(min(40_000, chance.lognormvariate(7.6, 0.7)))
    return b"k8s\x00" + chance.randbytes(size)


def puts(first: int, count: int, keys: int, small: bool) -> bytes:
    operations = [
        {"requestPut": {"key": encode(key(number % keys)), "value": encode(value(number, small))}}
        for number in range(first, first + count)
    ]
    return json.dumps({"success": operations}).encode()


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def fill(port: int, keys: int, revisions: int, small: bool) -> None:
    def send(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/v3/kv/txn", puts(first, min(BATCH, revisions - first), keys, small))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != http.client.OK:
            raise SystemExit(f"etcd refused a write: {body[:200]!r}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, range(0, revisions, BATCH)))


def make(target: Path, megabytes: int, small: bool = False) -> None:
    each = 470 if small else 3500
    revisions = megabytes * 1_000_000 // each
    keys = revisions * 8 // 10
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        options = ("--unsafe-no-fsync", "--quota-backend-bytes=8589934592", "--snapshot-count=5000")
        with EtcdServer(find_etcd(), Path(scratch), options) as server:
            fill(server.client_port, keys, revisions, small)
            server.save_snapshot(target)


def made(directory: Path, megabytes: int) -> Path:
    """The db of that size in `directory`, made where it is not there yet."""
    target = directory / f"kubernetes-{megabytes}.db"
    if not target.exists():
        make(target, megabytes)
    return target


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("target", type=Path)
    options.add_argument("--megabytes", type=int, default=774)
    options.add_argument("--small", action="store_true")
    chosen = options.parse_args()
    make(chosen.target, chosen.megabytes, chosen.small)
    print(chosen.target, chosen.target.stat().st_size)


if __name__ == "__main__":
    main()
