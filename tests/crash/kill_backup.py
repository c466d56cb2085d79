"""Kills `drtool backup` with SIGKILL at random moments: no half backup is listed, no orphan is left by the next run.

    python -m tests.crash.kill_backup [--kills 1000] [--store directory|s3] [--seed 1]

The node, its etcd and the S3 server are real. After every kill each backup that is listed is verified by what the
store holds; every few kills a run is let through, and must leave nothing behind but whole backups.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drtool import config as configuration
from drtool.commands.fetch import Shelf, shelf
from drtool.commands.verify import verify
from snapshots import scratch_s3
from snapshots.etcd import Etcd
from tests.builders.live_node import LiveNode, live_node
from tests.commands.backing import IDENTITY, RECIPIENT

LET_THROUGH = 5


@dataclass(frozen=True)
class Setting:
    node: LiveNode
    directory: Path
    environment: dict[str, str]
    server: scratch_s3.Server | None = None

    def command(self) -> list[str]:
        program = [sys.executable, "-c", "from drtool.cli import main; main()"]
        return [*program, "backup", "--root", str(self.node.directory), "-o", "json"]

    def shelf(self) -> Shelf:
        config = configuration.load(self.directory / "config.yaml", self.environment)
        return shelf(config, self.server.credentials if self.server else None)


@dataclass
class Tally:
    kills: int = 0
    too_late: int = 0
    finished: int = 0
    listed: int = 0


@contextlib.contextmanager
def setting(directory: Path, store: str) -> Iterator[Setting]:
    identity = directory / "identity.txt"
    identity.write_text(f"{IDENTITY}\n")
    (directory / "store").mkdir()
    (directory / "config.yaml").write_text("{}")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "DRTOOL_"))}
    environment |= {
        "DRTOOL_CONFIG": str(directory / "config.yaml"),
        "DRTOOL_RECIPIENTS": RECIPIENT,
        "DRTOOL_IDENTITIES": str(identity),
        "DRTOOL_SPOOL_DIRECTORY": str(directory / "spool"),
        "DRTOOL_RETENTION_MINIMUM_AGE": "0s",
        "DRTOOL_RETENTION_KEEP_LAST": "3",
        "DRTOOL_RETENTION_HOURLY": "0",
    }
    with contextlib.ExitStack() as stack:
        node = stack.enter_context(live_node(directory / "root"))
        with Etcd(node.access) as etcd:
            for batch in range(15):
                etcd.put_all([(f"/k/{batch}/{n}".encode(), os.urandom(10_000)) for n in range(100)])
        server = None
        if store == "s3":
            server = stack.enter_context(scratch_s3.running(directory / "weed"))
            environment |= server.environment()
            environment |= {"DRTOOL_STORE_URL": f"s3://{server.bucket}/killed"}
            environment |= {"DRTOOL_STORE_ENDPOINT": server.endpoint, "DRTOOL_STORE_PATH_STYLE": "true"}
        else:
            environment["DRTOOL_STORE_URL"] = (directory / "store").as_uri()
        yield Setting(node, directory, environment, server)


def through(where: Setting) -> float:
    """A run that nobody disturbs; its seconds."""
    began = time.monotonic()
    done = subprocess.run(where.command(), env=where.environment, capture_output=True, check=False)
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr.decode()}"
    return time.monotonic() - began


def look(where: Setting, clean: bool) -> int:
    """How many backups are listed; each is whole. `clean`: nothing else is there."""
    held = where.shelf()
    found = held.inventory()
    assert found.broken == (), found.broken
    for one in found.backups:
        assert verify(held, one.id).opened
    if clean:
        assert found.orphans == (), found.orphans
        # What a kill left of writing a lock goes after some minutes: another run may just be writing its own.
        parts = [place for place in where.directory.rglob("*.part") if not {"weed", "lock"} & set(place.parts)]
        assert parts == [], parts
        if where.server is not None:
            from datetime import UTC, datetime, timedelta

            assert held.store.sweep("", datetime.now(UTC) + timedelta(hours=1)) == 0, "an upload was left"
    return len(found.backups)


def campaign(where: Setting, kills: int, seed: int, told: bool = False) -> Tally:
    chance = random.Random(seed)  # noqa: S311 - the same moments every time
    tally = Tally()
    length = min(through(where) for _ in range(2))
    number = 0
    while tally.kills < kills:
        number += 1
        child = subprocess.Popen(
            where.command(), env=where.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            child.wait(chance.uniform(length * 0.1, length))
            tally.too_late += 1
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            tally.kills += 1
        tally.listed = look(where, clean=False)
        if number % LET_THROUGH == 0 or tally.kills == kills:
            length = through(where)  # the machine may be busier now, or idle
            tally.finished += 1
            tally.listed = look(where, clean=True)
        if told and number % 50 == 0:
            print(number, tally, flush=True)  # noqa: T201 - a script's own report
    return tally


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--kills", type=int, default=1000)
    options.add_argument("--store", choices=["directory", "s3"], default="directory")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as directory, setting(Path(directory), given.store) as where:
        print(campaign(where, given.kills, given.seed, told=True))  # noqa: T201


if __name__ == "__main__":
    main()
