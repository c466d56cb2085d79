"""A read-only file system: each step that changes something says which file, and there is nothing to take back."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from drtool.core.errors import TakenBack
from drtool.core.plan import Phase, Plan, state
from drtool.host.disk import Disk
from drtool.host.journal import DiskJournal
from drtool.host.machine import Host
from drtool.host.root import Root
from manifests.steps.host import CreateFile
from manifests.steps.putting import PutFile
from manifests.steps.running import UnparkStaticPod
from tests.crash.test_kill_matrix import file_plan, issuing_plan, node, restore_plan, run, tree
from tests.fakes.host import PLAN
from tests.small_disk import read_only

MORE = (CreateFile("/etc/sysctl.d/k8s.conf", "a"), PutFile("/etc/kubernetes/new/link", 0o777, 0, 0, link="/etc/hosts"))
STEPS = (*file_plan(Path()).steps, *restore_plan(Path()).steps, *issuing_plan(Path()).steps, *MORE)


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_nothing_was_changed_and_the_file_is_named(number: int, tmp_path: Path) -> None:
    step = STEPS[number]
    if isinstance(step, UnparkStaticPod):
        return  # by itself it has nothing to move
    plan: Plan[Host] = Plan(PLAN, "read-only", "lab", (step,))
    node(tmp_path)
    before = tree(tmp_path)
    with ExitStack() as mounts:
        for place in ("etc", "var/lib/etcd", "var/lib/kubelet"):
            mounts.enter_context(read_only(tmp_path / place))
        with pytest.raises(TakenBack, match=r"failed and the plan was taken back: /(etc|var)/.*: Read-only") as caught:
            run(tmp_path, plan, Disk())
    assert caught.value.exit_status == 21
    assert "mount -o remount,rw" in caught.value.hint
    assert tree(tmp_path) == before
    assert state(DiskJournal(Root(tmp_path), PLAN).marks()).phase is Phase.TAKEN_BACK
