"""The process is killed at every instant of a plan, then resumed or taken back: the tree is as before or as after."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from drtool.core.plan import Phase, Plan, carry_out, encode, state, undo
from drtool.host.disk import Disk
from drtool.host.journal import DiskJournal
from drtool.host.machine import Host
from drtool.host.root import Root
from manifests.editing import Remove, Set, edit
from manifests.steps import ChangeMode, ParkFile, edit_file
from tests.fakes.disk import DyingDisk
from tests.fakes.host import PLAN, rooted

MANIFEST = b"""kind: Pod # the one
spec:
  containers:
  - command:
    - etcd
    - --name=cp-1
    - --data-dir=/var/lib/etcd
    - --old
    image: "etcd:3.7.0"
"""

Tree = dict[str, tuple[int, str]]


def tree(root: Path) -> Tree:
    """Every path but drtool's own directory, with its mode and contents."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name == "var/lib/drtool" or name.startswith("var/lib/drtool/"):
            continue
        what = str(path.readlink()) if path.is_symlink() else "" if path.is_dir() else path.read_bytes().hex()
        found[name] = (path.lstat().st_mode, hashlib.sha256(what.encode()).hexdigest())
    return found


def node(root: Path) -> None:
    manifests = root / "etc/kubernetes/manifests"
    manifests.mkdir(parents=True)
    (manifests / "etcd.yaml").write_bytes(MANIFEST)
    (manifests / "stray.yaml.bak").write_bytes(MANIFEST)
    (root / "etc/hosts").write_bytes(b"127.0.0.1 localhost\n192.0.2.1 cp-1\n")
    (root / "var/lib").mkdir(parents=True)


def file_plan(root: Path) -> Plan[Host]:
    path, stray = "/etc/kubernetes/manifests/etcd.yaml", "/etc/kubernetes/manifests/stray.yaml.bak"
    command = ("spec", "containers", 0, "command")
    changes = edit(path, MANIFEST, (Set((*command, 1), "--name=cp-2"), Remove((*command, 3))))
    steps = (
        *edit_file(path, MANIFEST, changes),
        ParkFile(stray, f"/etc/kubernetes/drtool-{PLAN}/stray.yaml.bak"),
        ChangeMode("/etc/hosts", 0o644, 0o600),
    )
    return Plan(PLAN, "a test", "lab", steps)


def run(root: Path, plan: Plan[Host], disk: Disk, back: bool = False) -> None:
    journal = DiskJournal(Root(root), PLAN, disk)
    if not journal.encoded():
        journal.start(encode(plan))
    (undo if back else carry_out)(plan, rooted(root, disk), journal)


def killed(action: Callable[[], None]) -> bool:
    """Run in a child; true where SIGKILL ended it."""
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - a forked child must not run the parent's tests
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


class Matrix:
    """Fresh copies of one node, and the trees it may be in."""

    def __init__(self, base: Path, make: Callable[[Path], None], plan: Callable[[Path], Plan[Host]]) -> None:
        self.base = base
        self.pristine = base / "pristine"
        make(self.pristine)
        self.before = tree(self.pristine)
        self.plan = plan(self.pristine)
        self.applied = self.fresh("applied")
        counting = DyingDisk()
        run(self.applied, self.plan, counting)
        self.instants = counting.instants
        self.after = tree(self.applied)
        shutil.copytree(self.applied, base / "counted", symlinks=True)
        counting = DyingDisk()
        run(base / "counted", self.plan, counting, back=True)
        self.instants_back = counting.instants

    def fresh(self, name: str, source: Path | None = None) -> Path:
        place = self.base / name
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source or self.pristine, place, symlinks=True)
        return place


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    return Matrix(tmp_path_factory.mktemp("matrix"), node, file_plan)


def test_the_plan_changes_the_tree_and_undo_is_the_identity(matrix: Matrix) -> None:
    assert matrix.after != matrix.before
    assert tree(matrix.base / "counted") == matrix.before


def test_killed_at_every_instant_then_resumed(matrix: Matrix) -> None:
    for instant in range(1, matrix.instants + 1):
        root = matrix.fresh("work")
        assert killed(lambda: run(root, matrix.plan, DyingDisk(instant)))  # noqa: B023 - runs at once
        run(root, matrix.plan, Disk())
        assert tree(root) == matrix.after, f"killed at instant {instant}"
        assert state(DiskJournal(Root(root), PLAN).marks()).phase is Phase.DONE


def test_killed_at_every_instant_then_taken_back(matrix: Matrix) -> None:
    for instant in range(1, matrix.instants + 1):
        root = matrix.fresh("work")
        assert killed(lambda: run(root, matrix.plan, DyingDisk(instant)))  # noqa: B023 - runs at once
        run(root, matrix.plan, Disk(), back=True)
        assert tree(root) == matrix.before, f"killed at instant {instant}"


def test_killed_at_every_instant_of_the_way_back(matrix: Matrix) -> None:
    for instant in range(1, matrix.instants_back + 1):
        root = matrix.fresh("work", matrix.applied)
        assert killed(lambda: run(root, matrix.plan, DyingDisk(instant), back=True))  # noqa: B023 - runs at once
        run(root, matrix.plan, Disk(), back=True)
        assert tree(root) == matrix.before, f"killed at instant {instant}"


def test_killed_on_the_way_back_then_carried_out_again(matrix: Matrix) -> None:
    for instant in range(1, matrix.instants_back + 1):
        root = matrix.fresh("work", matrix.applied)
        assert killed(lambda: run(root, matrix.plan, DyingDisk(instant), back=True))  # noqa: B023 - runs at once
        run(root, matrix.plan, Disk())
        assert tree(root) == matrix.after, f"killed at instant {instant}"
