"""Objects without an API server, against etcdctl on a served copy: `python -m bench.objects [--db FILE]`.

The db: 180,000 keys, about 770 MB, objects of a real API server 1.37 (the snapshot in ../shared) under new names, each
with a uid of its own and owners' uids shared by replicas, in the proportions of a busy cluster. `--db` names a file to
keep it in, or to use again.

Jobs, in turns, medians of `--rounds`: list all keys, get one object, list one kind, decode every object. drtool's times
hold the start of the program and the opening of the file; etcdctl's are on an etcd that already runs.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from snapshots import mvcc, wire
from snapshots.etcd import Etcd, EtcdAccess
from snapshots.registry import envelope, keys
from snapshots.registry.objects import Registry
from tests.etcd_server import EtcdServer, find_etcd
from tests.registry import real

KEYS = 180_000
SHARES = {
    "pods": 42,
    "replicasets": 16,
    "deployments": 9,
    "configmaps": 9,
    "events": 8,
    "endpointslices": 6,
    "serviceaccounts": 5,
    "leases": 3,
    "services": 2,
}
UID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
OPTIONS = ("--unsafe-no-fsync", "--quota-backend-bytes=8589934592", "--max-txn-ops=512")
BATCH = 64
REPLICAS = 10
"""Objects in a row that share an owner: about four Pods of them."""


def originals() -> dict[str, list[bytes]]:
    """Values by resource, from the real snapshot."""
    found: dict[str, list[bytes]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "real.db"
        path.write_bytes(gzip.decompress((real.SHARED / "real.db.gz").read_bytes()))
        with mvcc.opened(path) as keyspace:
            for kv in keyspace.index().prefix(b"/registry/"):
                place = keys.place(kv.key)
                if place and envelope.encoding(kv.value) is envelope.Encoding.PROTOBUF:
                    found.setdefault(place.resource, []).append(kv.value)
    return found


def made(count: int) -> Iterator[tuple[bytes, bytes]]:
    chance = random.Random(1)  # noqa: S311 - the same db every time, not a secret
    values, kinds, weights = originals(), list(SHARES), list(SHARES.values())
    for number in range(count):
        (kind,) = chance.choices(kinds, weights)
        value = renewed(chance.choice(values[kind]), chance, number // REPLICAS)
        if kind == "configmaps":
            value = config_map(chance)
        yield keys.prefix_of("", kind, f"team-{number // REPLICAS % 400}") + f"object-{number:07d}".encode(), value


def renewed(value: bytes, chance: random.Random, owner: int) -> bytes:
    """Under uids of its own; other uids in it, those of owners, are shared with its neighbours as replicas do."""
    own = UID.search(value)
    mine = str(uuid.UUID(int=chance.getrandbits(128))).encode()
    theirs = str(uuid.UUID(int=owner + 1)).encode()
    return UID.sub(lambda found: mine if own and found[0] == own[0] else theirs, value)


def config_map(chance: random.Random) -> bytes:
    """Some kilobytes of text, as dashboards and settings are."""
    text = b"".join(b"%s = %d\n" % (b"setting" * chance.randint(1, 4), chance.randint(0, 9999)) for _ in range(600))
    metadata = wire.field(1, b"settings") + wire.field(3, b"team") + wire.field(5, str(uuid.uuid4()).encode())
    raw = wire.field(1, metadata) + wire.field(2, wire.field(1, b"settings.ini") + wire.field(2, text))
    return (
        envelope.PROTOBUF_MAGIC + wire.field(1, wire.field(1, b"v1") + wire.field(2, b"ConfigMap")) + wire.field(2, raw)
    )


def make(target: Path, count: int) -> None:
    with (
        tempfile.TemporaryDirectory(dir=target.parent) as scratch,
        EtcdServer(find_etcd(), Path(scratch), OPTIONS) as server,
    ):
        with Etcd(EtcdAccess((f"http://127.0.0.1:{server.client_port}",)), timeout=60) as etcd:
            batch: list[tuple[bytes, bytes]] = []
            for pair in made(count):
                batch.append(pair)
                if len(batch) == BATCH:
                    etcd.put_all(batch)
                    batch = []
            etcd.put_all(batch)
        server.save_snapshot(target)


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def decode_all(db: Path, managed: bool) -> tuple[int, float, int]:
    """Objects, seconds of one CPU, bytes of their values: in this process, the index already made."""
    with mvcc.opened(db) as keyspace:
        registry = Registry(keyspace.index(), str(db))
        gc.disable()  # as the commands do
        start, count, size = time.process_time(), 0, 0
        for pair in registry.source.prefix(b"/registry/"):
            size += len(pair.value)
            envelope.decode(pair.value, managed)
            count += 1
        gc.enable()
        return count, time.process_time() - start, size


def compare(db: Path, rounds: int) -> None:
    drtool = str(Path(sys.executable).with_name("drtool"))
    etcdctl = str(find_etcd("etcdctl"))
    with mvcc.opened(db) as keyspace:
        pods = keyspace.index().keys(b"/registry/pods/")
    place = keys.place(pods[len(pods) // 2])
    assert place is not None
    with tempfile.TemporaryDirectory(dir=db.parent) as scratch:
        run(str(find_etcd("etcdutl")), "snapshot", "restore", str(db), "--data-dir", f"{scratch}/m1.etcd")
        with EtcdServer(find_etcd(), Path(scratch), OPTIONS) as server:
            ctl = (etcdctl, "--endpoints", f"http://127.0.0.1:{server.client_port}", "--command-timeout=120s", "get")
            source = ("--from", str(db))
            pod = pods[len(pods) // 2].decode()
            jobs = {
                "list all keys": ((drtool, "ls", *source), (*ctl, "/registry/", "--prefix", "--keys-only")),
                "one object": ((drtool, "get", "pod", place.name, "-n", place.namespace, *source), (*ctl, pod)),
                "keys of one kind": (
                    (drtool, "ls", "pods", *source),
                    (*ctl, "/registry/pods/", "--prefix", "--keys-only"),
                ),
                "table of one namespace": (
                    (drtool, "get", "pods", "-n", place.namespace, *source),
                    (*ctl, f"/registry/pods/{place.namespace}/", "--prefix"),
                ),
            }
            print(f"{'job':24}{'drtool s':>10}{'etcdctl s':>11}{'ratio':>8}")
            for job, (ours, theirs) in jobs.items():
                pairs = [(timed(lambda: run(*ours)), timed(lambda: run(*theirs))) for _ in range(rounds)]  # noqa: B023
                mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
                print(f"{job:24}{mine:10.2f}{other:11.2f}{mine / other:8.2f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--db", type=Path)
    options.add_argument("--keys", type=int, default=KEYS)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        db = chosen.db or Path(scratch) / "objects.db"
        if not db.exists():
            make(db, chosen.keys)
        print(f"{db.stat().st_size / 1e6:.0f} MB")
        with mvcc.opened(db) as keyspace:
            seconds = timed(lambda: print(f"{len(keyspace.index())} keys"))
            print(f"index of all keys in {seconds:.2f} s")
        for managed in (True, False):
            count, seconds, size = decode_all(db, managed)
            rate = f"{count / seconds:.0f} a second of one CPU {'with' if managed else 'without'} managed fields"
            print(f"{count} objects of {size / count:.0f} bytes decoded: {rate}")
        compare(db, chosen.rounds)


if __name__ == "__main__":
    main()
