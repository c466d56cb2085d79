"""What `drtool check` costs from the shell: time and memory, against an empty Python and kubeadm's own look at a PKI.

    python -m bench.check TREE [--runs N]

Goals: `--version` 0.1 s, a check of the whole catalogue 0.4 s, less than 100 MB. Runs are interleaved and the median is
printed; kubeadm is found on PATH or under $LAB (the lab of ../shared), and left out where it is not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

GOALS = {"drtool --version": 0.1, "drtool check": 0.4}
MEMORY = 100


def kubeadm() -> str:
    found = shutil.which("kubeadm")
    built = sorted(Path(os.environ.get("LAB", "/tmp/drtool-lab")).glob("*/bin/kubeadm"))
    return found or (str(built[-1]) if built else "")


def commands(tree: Path) -> dict[str, list[str]]:
    drtool = str(Path(sys.executable).with_name("drtool"))
    found = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "drtool --version": [drtool, "--version"],
        "drtool check": [drtool, "check", "--root", str(tree), "-o", "json"],
    }
    if kubeadm():
        found["kubeadm certs check-expiration"] = [
            *(kubeadm(), "certs", "check-expiration", "--cert-dir", f"{tree}/etc/kubernetes/pki"),
            f"--config={tree}/kubeadm-config.yaml",
        ]
    return found


def run(command: list[str]) -> tuple[float, float, float]:
    """Seconds from start to end, seconds of CPU, and the largest resident set in MB."""
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--runs", type=int, default=11)
    asked = parser.parse_args()
    told: dict[str, list[tuple[float, float, float]]] = {}
    for _ in range(asked.runs):
        for name, command in commands(asked.tree).items():
            told.setdefault(name, []).append(run(command))
    medians = {name: [statistics.median(column) for column in zip(*runs, strict=True)] for name, runs in told.items()}
    print(f"{'command':34} {'seconds':>8} {'CPU s':>8} {'MB':>6}   of `drtool check`")
    for name, (seconds, cpu, memory) in medians.items():
        goal = f"  goal {GOALS[name]} s, {MEMORY} MB" if name in GOALS else ""
        print(f"{name:34} {seconds:8.3f} {cpu:8.3f} {memory:6.0f}   {seconds / medians['drtool check'][0]:.2f}{goal}")


if __name__ == "__main__":
    main()
