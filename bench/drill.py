"""From a backup in SeaweedFS to a healthy etcd and a healthy API server: `python -m bench.drill --apiserver FILE`.

    python -m bench.drill [--megabytes 774] [--rounds 3] [--etcd FILE] [--apiserver FILE] [--directory DIR]

A real etcd is filled with Pods, ConfigMaps and Secrets as an API server stores them (protobuf), backed up with the
node's files into SeaweedFS, sealed, and drilled. Prints each phase of each round, and the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from drtool.commands.backup import backup
from drtool.commands.drill import Drill, Wish, drill
from drtool.commands.fetch import shelf
from drtool.commands.scratch_node import ScratchNode, lay_scratch
from drtool.config import Config, Spool
from snapshots import scratch_s3, seal
from snapshots.etcd import Etcd
from snapshots.wire import field

GOALS = {"boot etcd": 15.0, "boot API server": 30.0}
BATCH = 100


def pair(number: int, key: str, value: bytes) -> bytes:
    return field(number, field(1, key.encode()) + field(2, value))


def stored(version: str, kind: str, raw: bytes) -> bytes:
    """k8s.io/apimachinery/pkg/runtime.Unknown, as the API server's storage writes it."""
    return b"k8s\x00" + field(1, field(1, version.encode()) + field(2, kind.encode())) + field(2, raw)


def metadata(name: str, namespace: str, chance: random.Random) -> bytes:
    uid = f"{chance.getrandbits(128):032x}"
    labels = pair(11, "app", f"app-{chance.randrange(97)}".encode()) + pair(11, "hash", uid[:9].encode())
    return field(1, field(1, name.encode()) + field(3, namespace.encode()) + field(5, uid.encode()) + labels)


def objects(seed: int = 1) -> Iterator[tuple[bytes, bytes]]:
    """Six Pods of 1 to 5 kB, three ConfigMaps, and a Secret that does not compress, again and again."""
    chance, number = random.Random(seed), 0  # noqa: S311 - benchmark data
    while True:
        number += 1
        namespace, name = f"team-{number % 40}", f"web-{number:08d}"
        about = metadata(name, namespace, chance)
        if number % 10 == 0:
            yield (
                f"/registry/secrets/{namespace}/{name}".encode(),
                stored("v1", "Secret", about + pair(2, "token", chance.randbytes(2500)) + field(3, b"Opaque")),
            )
        elif number % 10 < 4:
            settings = "".join(f"key{line} = {chance.getrandbits(64):x}\n" for line in range(chance.randint(20, 120)))
            raw = about + pair(2, "settings.ini", settings.encode())
            yield f"/registry/configmaps/{namespace}/{name}".encode(), stored("v1", "ConfigMap", raw)
        else:
            containers = b"".join(container(index, chance) for index in range(chance.randint(1, 4)))
            raw = about + field(2, containers) + field(3, field(1, b"Running"))
            yield f"/registry/pods/{namespace}/{name}".encode(), stored("v1", "Pod", raw)


def container(index: int, chance: random.Random) -> bytes:
    image = f"registry.example/app-{chance.randrange(53)}@sha256:{chance.getrandbits(256):064x}"
    env = b"".join(pair(7, f"SETTING_{k}", f"{chance.getrandbits(128):x}".encode()) for k in range(14))
    return field(2, field(1, f"c{index}".encode()) + field(2, image.encode()) + env)


def fill(node: ScratchNode, megabytes: float) -> int:
    """Puts until the db is that large (10**6 bytes); how many keys."""
    source, count = objects(), 0
    with Etcd(node.access) as etcd:
        while etcd.status().db_size < megabytes * 1e6:
            for _ in range(20):
                etcd.put_all([next(source) for _ in range(BATCH)])
                count += BATCH
    return count


def spent() -> float:
    """CPU seconds of this process and of the servers that it has ended."""
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return mine.ru_utime + mine.ru_stime + theirs.ru_utime + theirs.ru_stime


def shown(found: Drill, cpu: float) -> None:
    verdict = "PROVEN" if found.good else f"FAILED at {found.failed}"
    print(f"{verdict}; {cpu:.1f} s of CPU in all; load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    total = 0.0
    for phase in found.phases:
        total += phase.seconds
        goal = f", goal {GOALS[phase.name]:.0f} s" if phase.name in GOALS else ""
        print(f"  {phase.seconds:8.2f} s  {phase.name:20} {total:8.2f} s so far{goal}")
    for line in found.not_proven:
        print(f"  not proven: {line}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--megabytes", type=float, default=774)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--etcd", type=Path)
    options.add_argument("--apiserver", default="")
    options.add_argument("--directory", type=Path)
    given = options.parse_args()
    identity, recipient = seal.throwaway()
    with tempfile.TemporaryDirectory(dir=given.directory, prefix="drtool-bench-") as name:
        place = Path(name)
        opens = place / "identity.txt"
        opens.touch(0o600)
        opens.write_text(f"{identity}\n")
        with scratch_s3.running(place / "s3") as server:
            config = Config(
                store=server.config("clusters"), recipients=(recipient,), identities=(str(opens),), spool=Spool("")
            )
            held = shelf(config, server.credentials)
            node = lay_scratch(place / "cp-1")
            with node.etcd(given.etcd):
                began = time.monotonic()
                keys = fill(node, given.megabytes)
                print(f"{keys} keys written in {time.monotonic() - began:.1f} s", flush=True)
                began = time.monotonic()
                record = backup(config, held, node.root).record
            sizes = f"{record.db.plain_size / 1e6:.0f} MB of db, {record.db.sealed_size / 1e6:.0f} MB sealed"
            print(f"backed up in {time.monotonic() - began:.1f} s: {sizes}", flush=True)
            for _ in range(given.rounds):
                before = spent()
                found = drill(held, held.choose(), Wish(str(given.etcd or ""), given.apiserver))
                shown(found, spent() - before)


if __name__ == "__main__":
    main()
