"""The process is killed at every instant of a plan, then resumed or taken back: the tree is as before or as after.

And each thing that a plan put aside is lost in turn: then it is taken back whole, or nothing is touched.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drtool.core.errors import Refused
from drtool.core.plan import Keeps, Phase, Plan, carry_out, encode, state, undo
from drtool.host.disk import Disk
from drtool.host.journal import DiskJournal
from drtool.host.machine import Host
from drtool.host.root import Root
from manifests.editing import Remove, Set, edit
from manifests.pki.certificates import read_pem
from manifests.pki.issuing import issue, issue_authority, new_key
from manifests.steps.files import ChangeMode, ParkFile, PointLink, edit_file
from manifests.steps.issuing import IssueCertificate, IssueKubeletClient, Signer, Subject
from manifests.steps.running import ParkStaticPod, Program, UnparkStaticPod
from snapshots.steps.data import SwapDataDir
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
COMMAND = ("spec", "containers", 0, "command")
DATA = f"/var/lib/etcd/.drtool-{PLAN}"
BORN = datetime(2026, 11, 30, tzinfo=UTC)
SIGNER = Signer("/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/ca.key")


def tree(root: Path) -> Tree:
    """Every path but drtool's own directory, with its mode and contents; of what is issued, what it says."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name == "var/lib/drtool" or name.startswith("var/lib/drtool/"):
            continue
        what = str(path.readlink()) if path.is_symlink() else "" if path.is_dir() else said(path.read_bytes())
        found[name] = (path.lstat().st_mode, what)
    return found


def said(data: bytes) -> str:
    """A certificate's subject, names and dates; else the bytes. Serial numbers and new keys are random."""
    if not data.startswith(b"-----BEGIN CERTIFICATE"):
        return data.hex()
    (one, *_) = read_pem("", data).certificates
    return f"{one.subject} {one.names()} {one.not_before} {one.not_after}"


def node(root: Path) -> None:
    manifests, pki, kubelet = (
        root / "etc/kubernetes/manifests",
        root / "etc/kubernetes/pki",
        root / "var/lib/kubelet/pki",
    )
    for place in (manifests, pki, kubelet, root / "var/lib/etcd/member/snap", root / f"{DATA[1:]}/new/member/snap"):
        place.mkdir(parents=True)
    (manifests / "etcd.yaml").write_bytes(MANIFEST)
    (manifests / "stray.yaml.bak").write_bytes(MANIFEST)
    (root / "etc/hosts").write_bytes(b"127.0.0.1 localhost\n192.0.2.1 cp-1\n")
    (root / "var/lib/etcd/member/snap/db").write_bytes(b"old")
    (root / f"{DATA[1:]}/new/member/snap/db").write_bytes(b"new")
    authority = issue_authority("kubernetes", BORN, new_key("ECDSA-P256"))
    leaf = issue(authority, "kube-apiserver", ["serverAuth"], BORN, new_key("ECDSA-P256"), names=["192.0.2.1"])
    for name, issued in (("ca", authority), ("apiserver", leaf)):
        (pki / f"{name}.crt").write_bytes(issued.certificate_pem)
        (pki / f"{name}.key").write_bytes(issued.key_pem)
    (kubelet / "kubelet-client-old.pem").write_bytes(leaf.certificate_pem + leaf.key_pem)
    (kubelet / "plain.pem").write_bytes(leaf.certificate_pem)
    (kubelet / "kubelet-client-current.pem").symlink_to("/var/lib/kubelet/pki/kubelet-client-old.pem")


def file_plan(_: Path) -> Plan[Host]:
    path, stray = "/etc/kubernetes/manifests/etcd.yaml", "/etc/kubernetes/manifests/stray.yaml.bak"
    changes = edit(path, MANIFEST, (Set((*COMMAND, 1), "--name=cp-2"), Remove((*COMMAND, 3))))
    steps = (
        *edit_file(path, MANIFEST, changes),
        ParkFile(stray, f"/etc/kubernetes/drtool-{PLAN}/stray.yaml.bak"),
        ChangeMode("/etc/hosts", 0o644, 0o600),
        PointLink("/var/lib/kubelet/pki/plain.pem", "", "/var/lib/kubelet/pki/kubelet-client-old.pem"),
    )
    return Plan(PLAN, "files", "lab", steps)


def restore_plan(_: Path) -> Plan[Host]:
    etcd = Program("etcd", (2379,), "/var/lib/etcd")
    parked = "/etc/kubernetes/manifests/etcd.yaml", f"/etc/kubernetes/drtool-{PLAN}/etcd.yaml"
    steps = (
        ParkStaticPod(etcd, *parked),
        SwapDataDir("/var/lib/etcd", f"{DATA}/new", f"{DATA}/old"),
        UnparkStaticPod(etcd, *parked),
    )
    return Plan(PLAN, "a restore", "lab", steps)


def issuing_plan(_: Path) -> Plan[Host]:
    pki, kubelet = "/etc/kubernetes/pki", "/var/lib/kubelet/pki"
    serving = Subject("kube-apiserver", ("serverAuth",), names=("cp-1", "192.0.2.2"))
    client = Subject("system:node:cp-1", ("clientAuth",), ("system:nodes",))
    steps = (
        IssueCertificate(f"{pki}/apiserver.crt", f"{pki}/apiserver.key", SIGNER, serving),
        IssueKubeletClient(
            f"{kubelet}/kubelet-client-current.pem", f"{kubelet}/kubelet-client-new.pem", SIGNER, client
        ),
    )
    return Plan(PLAN, "certificates", "lab", steps)


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


@pytest.fixture(scope="module", params=[file_plan, restore_plan, issuing_plan], ids=lambda plan: plan.__name__)
def matrix(request: pytest.FixtureRequest) -> Iterator[Matrix]:
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as base:
        yield Matrix(Path(base), node, request.param)


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


def put_aside(root: Path, plan: Plan[Host]) -> list[Path]:
    """Each thing that the plan keeps on the node, and the directory of it all."""
    aside = root / f"var/lib/drtool/plans/{PLAN}/aside"
    kept = [root / path.lstrip("/") for step in plan.steps if isinstance(step, Keeps) for path in step.kept(PLAN)]
    return [
        path for path in (*kept, aside, *aside.rglob("*")) if path.is_file() or (path.is_dir() and any(path.iterdir()))
    ]


def test_what_was_put_aside_is_lost_then_nothing_is_touched_or_all_is_taken_back(matrix: Matrix) -> None:
    lost = [path.relative_to(matrix.applied) for path in put_aside(matrix.applied, matrix.plan)]
    refused = 0
    for path in lost:
        root = matrix.fresh("work", matrix.applied)
        shutil.rmtree(root / path) if (root / path).is_dir() else (root / path).unlink()
        found = tree(root)
        with suppress(Refused):
            run(root, matrix.plan, Disk(), back=True)
        done = state(DiskJournal(Root(root), PLAN).marks()).phase is Phase.DONE
        assert tree(root) == (found if done else matrix.before), path
        refused += done
    assert refused
