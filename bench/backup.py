"""A whole backup to SeaweedFS: `drtool backup` against etcdctl + zstd -T0 -3 + age + rclone, as a ratio, with memory.

    python bench/backup.py [--megabytes 500] [--rounds 15] [--directory /var/tmp/drtool-bench]

drtool also checks the db's structure, reads everything back, opens and compares it; the others only send. The rest of
the pipeline after etcdctl (which cannot write to a pipe) is `zstd | age | rclone rcat`. Runs are interleaved; the
medians are compared. Memory is that of drtool's processes together, in runs of their own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.etcd_data import FLAGS, prepared
from bench.measuring import resident
from bench.stream import timed
from snapshots import scratch, scratch_s3
from snapshots.seal import throwaway

MEMORY_ROUNDS = 3


def shell(script: str, environment: dict[str, str]) -> float:
    """Seconds of the whole pipeline."""
    began = time.monotonic()
    done = subprocess.run(
        ["bash", "-ec", "set -o pipefail\n" + script], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return time.monotonic() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=float, default=500)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--directory", type=Path, default=Path("/var/tmp/drtool-bench"))
    given = options.parse_args()
    data = prepared(given.directory, given.megabytes)
    recipient = throwaway()[1]
    with (
        tempfile.TemporaryDirectory(dir=given.directory, prefix="weed-") as store,  # a gigabyte a round: never left
        scratch.running(data, extra=FLAGS) as etcd,
        scratch_s3.running(Path(store)) as s3,
    ):
        os.environ.pop("AWS_CA_BUNDLE", None)  # the rclone of some distributions stumbles over it
        os.environ.update(s3.environment())
        os.environ.update(
            {
                "DRTOOL_STORE_ENDPOINT": s3.endpoint,
                "DRTOOL_STORE_PATH_STYLE": "true",
                "DRTOOL_SPOOL_DIRECTORY": "",
                "RCLONE_S3_NO_CHECK_BUCKET": "true",
                "RCLONE_CONFIG_S_TYPE": "s3",
                "RCLONE_CONFIG_S_PROVIDER": "Other",
                "RCLONE_CONFIG_S_ENV_AUTH": "true",
                "RCLONE_CONFIG_S_ENDPOINT": s3.endpoint,
            }
        )
        empty = given.directory / "empty"
        empty.mkdir(exist_ok=True)
        ours = [sys.executable, "-m", "bench.drtool_backup", f"s3://{s3.bucket}/ours", recipient, etcd.client_url]
        theirs = f"""
            cd {given.directory}
            {scratch.binary("etcdctl")} --endpoints {etcd.client_url} snapshot save theirs.db
            zstd -q -T0 -3 -c theirs.db | age -r {recipient} | rclone rcat s:{s3.bucket}/theirs.zst.age
            rm theirs.db
        """
        timed(ours), shell(theirs, dict(os.environ))
        runs = []
        for _ in range(given.rounds):
            os.sync()  # what the run before has written is not for the next one to wait for
            mine_now, _ = timed(ours)
            os.sync()
            runs.append((mine_now, shell(theirs, dict(os.environ))))
        memory = max(resident(ours) for _ in range(MEMORY_ROUNDS)) / 1e6
    mine, other = median(run[0] for run in runs), median(run[1] for run in runs)
    print(
        f"{given.megabytes:g} MB: drtool {mine:.2f} s, etcdctl + zstd + age + rclone {other:.2f} s: "
        f"{mine / other:.2f}x, peak {memory:.0f} MB"
    )


if __name__ == "__main__":
    main()
