"""Work begun in another process: its answer, its failure, its end. Each in an interpreter without other threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.builders.tree import NOW, laid

GLANCE = """
from datetime import datetime
from pathlib import Path
from drtool.host.root import Root
from tui.ahead import Ahead
from tui.questions import glance_at

ahead = Ahead(lambda: glance_at(Root(Path({root!r})), datetime.fromisoformat({at!r})))
found = ahead.answer()
assert found == ahead.answer()
print(*found.verdict.root_causes, found.name, found.cluster)
"""
TWICE = """
import os
from tui.ahead import Ahead

ahead = Ahead(os.getpid)
print(ahead.answer() == os.getpid(), ahead.answer() == os.getpid())
"""
FAILING = """
import os
from drtool.core.errors import CannotTell
from tui.ahead import Ahead

def failing():
    raise CannotTell("no answer")

try:
    Ahead(failing).answer()
except CannotTell as said:
    print(said)
here = os.getpid()
print(Ahead(lambda: "done here" if os.getpid() == here else os._exit(3)).answer())
"""
ENDED = """
import time
from pathlib import Path
from tui.ahead import Ahead

ahead = Ahead(lambda: time.sleep(600))
child = ahead._child
ahead.end()
ahead.end()
print(child, Path(f"/proc/{child}").exists())
"""


def printed(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_a_glance_is_the_same_from_either_process(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.addresses("192.0.2.120")
    assert printed(GLANCE.format(root=str(tree.root), at=NOW.isoformat())) == "node-address-changed cp-1 kubernetes"


def test_the_answer_comes_from_a_child_once_and_from_here_afterwards() -> None:
    assert printed(TWICE) == "False True"


def test_a_child_that_fails_or_ends_leaves_the_work_to_its_parent() -> None:
    assert printed(FAILING) == "no answer\ndone here"


def test_a_child_that_still_works_goes_with_its_parent() -> None:
    child, there = printed(ENDED).split()
    assert int(child) > 1
    assert there == "False"
