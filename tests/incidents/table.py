"""Every incident of ../shared/incidents.md, its healthy look-alikes and its compound cases, tried on real trees.

`make incidents` prints what is expected and what `drtool check --root TREE` found, and exits with 1 on any mismatch;
words after it choose trials whose title holds one of them.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from drtool.cli.check import command
from drtool.core.errors import CannotTell
from tests.builders.real import SHARED
from tests.incidents.trials import (
    addresses,
    certificates,
    compound,
    etcd_data,
    etcd_flags,
    etcd_members,
    healthy,
    kubelet,
    manifests,
    objects,
    runtime,
    upgrades,
)
from tests.incidents.trials.trial import Trial, copy

PARTS = (
    addresses,
    certificates,
    manifests,
    upgrades,
    kubelet,
    runtime,
    etcd_members,
    etcd_data,
    etcd_flags,
    objects,
    healthy,
    compound,
)
ALL: tuple[Trial, ...] = tuple(trial for part in PARTS for trial in part.TRIALS.listed)
FIRST: tuple[Trial, ...] = tuple({trial.name: trial for trial in reversed(ALL)}.values())
"""Each change once, on one tree."""
AT = "2026-12-15T00:00:00Z"
INCIDENTS = Path(__file__).parents[3] / "shared" / "incidents.md"


@dataclass(frozen=True, slots=True)
class Found:
    """`faults` are ids of findings at or above `error`, `broken` those of checks that crashed."""

    causes: tuple[str, ...]
    faults: frozenset[str]
    broken: frozenset[str]


def tried(trial: Trial, directory: Path) -> Found:
    """Lays the trees below `directory`, changes them, and has the command judge them."""
    roots = [directory / f"{number}" for number in range(len(trial.trees))]
    trial.change(*(copy(name, root) for name, root in zip(trial.trees, roots, strict=True)))
    arguments = [part for root in roots for part in ("--root", str(root))]
    done = CliRunner().invoke(command, [*arguments, "--at", AT, "-o", "json"], standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, CannotTell):
        raise done.exception
    told = json.loads(done.stdout)
    nodes = told.get("nodes", [told])
    findings = [finding for node in nodes for finding in node["findings"]]
    return Found(
        tuple(told["rootCauses"]),
        frozenset(finding["id"] for finding in findings if finding["severity"] in {"error", "critical"}),
        frozenset(check["id"] for node in nodes for check in node["checks"] if check["status"] == "broken"),
    )


def mismatch(trial: Trial, found: Found) -> str:
    """What is wrong with an answer, "" for nothing."""
    if found.broken:
        return f"crashed: {', '.join(sorted(found.broken))}"
    if found.causes not in trial.expected:
        return f"found {shown(found.causes)}"
    return "" if found.causes or not found.faults else f"not healthy: {', '.join(sorted(found.faults))}"


def shown(causes: tuple[str, ...]) -> str:
    return " + ".join(causes) or "no cause"


def headings() -> tuple[str, ...]:
    """The incidents' names as the catalogue has them."""
    return tuple(re.findall(r"(?m)^#### (\S+)$", INCIDENTS.read_text()))


def main(words: list[str]) -> int:
    if not SHARED.is_dir():
        print("the trees of real nodes (../shared/trees) are not here: no incident can be tried", file=sys.stderr)
        return 1
    chosen = [trial for trial in ALL if not words or any(word in trial.title for word in words)]
    wrong = 0
    for trial in chosen:
        directory = Path(tempfile.mkdtemp(prefix="drtool-incident-"))
        try:
            problem = mismatch(trial, tried(trial, directory))
        finally:
            shutil.rmtree(directory)
        wrong += bool(problem)
        expected = " or ".join(shown(answer) for answer in trial.expected)
        print(f"{'MISS' if problem else 'ok  '}  {trial.title}  expected {expected}; {problem or 'found'}", flush=True)
    print(f"{len(chosen)} trials, {wrong} of them wrong")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
