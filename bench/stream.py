"""Streaming a snapshot to a file: drtool's client against `etcdctl snapshot save`, as a ratio, with peak memory.

    python bench/stream.py [--megabytes 500] [--rounds 15] [--directory /var/tmp/drtool-bench]

Both write and fsync a file and check the hash that etcd sends. Runs are interleaved; the medians are compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.etcd_data import FLAGS, prepared
from snapshots import scratch

SAVE = """
import os, sys
from snapshots.etcd import Etcd, EtcdAccess
from snapshots.trailer import Trailer
check = Trailer()
with Etcd(EtcdAccess((sys.argv[1],))) as etcd, open(sys.argv[2], "wb") as file:
    for piece in etcd.snapshot():
        check.feed(piece)
        file.write(piece)
    assert check.holds
    os.fsync(file.fileno())
"""


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds, and peak resident MB of that process alone."""
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return time.monotonic() - began, usage.ru_maxrss / 1024


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=float, default=500)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--directory", type=Path, default=Path("/var/tmp/drtool-bench"))
    given = options.parse_args()
    data = prepared(given.directory, given.megabytes)
    with scratch.running(data, extra=FLAGS) as etcd:
        ours, theirs = given.directory / "ours.db", given.directory / "theirs.db"
        python = [sys.executable, "-c", SAVE, etcd.client_url, str(ours)]
        etcdctl = [str(scratch.binary("etcdctl")), "--endpoints", etcd.client_url, "snapshot", "save", str(theirs)]
        timed(python), timed(etcdctl)  # the page cache is warm for both
        runs = [(timed(python), timed(etcdctl)) for _ in range(given.rounds)]
        size = ours.stat().st_size
        assert size == theirs.stat().st_size
    ours.unlink(), theirs.unlink()
    mine, other = median(run[0][0] for run in runs), median(run[1][0] for run in runs)
    memory = max(run[0][1] for run in runs)
    print(f"{size / 1e6:.0f} MB: drtool {mine:.2f} s, etcdctl {other:.2f} s: {mine / other:.2f}x, peak {memory:.0f} MB")


if __name__ == "__main__":
    main()
