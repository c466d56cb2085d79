"""What the first screen waits for, from another process, which needs an interpreter without other threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.builders.tree import NOW, laid

SCRIPT = """
import sys
from datetime import datetime
from pathlib import Path
from drtool.core.errors import CannotTell
from drtool.host.root import Root
from tui.glance import first_glance

with first_glance(Root(Path(sys.argv[1])), datetime.fromisoformat(sys.argv[2])) as glance:
    try:
        found = glance()
    except CannotTell as said:
        print(said)
        raise SystemExit from said
    print("manifests.node" in sys.modules, found == glance(), "manifests.node" in sys.modules)
    print(*found.verdict.root_causes, found.name, found.cluster, *found.facts, sep=", ")
"""


def printed(root: Path) -> str:
    words = [sys.executable, "-c", SCRIPT, str(root), NOW.isoformat()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_it_is_the_same_from_either_process(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.addresses("192.0.2.120")
    processes, found = printed(tree.root).splitlines()
    alone = len(os.sched_getaffinity(0)) == 1
    assert processes == f"{alone} True True"
    assert found.startswith("node-address-changed, cp-1, kubernetes, v1.37.2 kubeadm-stacked, 1 etcd member listed")


def test_what_cannot_be_judged_is_told_by_the_parent(tmp_path: Path) -> None:
    assert f"{tmp_path}/absent is not a directory" in printed(tmp_path / "absent")
