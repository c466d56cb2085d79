"""The disk is full from the n-th write on: the run ends with one clear error, and goes on or back with space again."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from drtool.core.errors import HalfDone, TakenBack
from drtool.core.plan import Plan
from drtool.host.disk import Disk
from drtool.host.machine import Host
from tests.crash.test_kill_matrix import Matrix, file_plan, node, restore_plan, run, tree


class FullDisk(Disk):
    """Takes `room` writes, and half of the next one."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.writes = 0

    def write(self, descriptor: int, data: bytes) -> None:
        self.writes += 1
        if self.writes > self.room:
            super().write(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(descriptor, data)


@pytest.mark.parametrize("plan", [file_plan, restore_plan])
@pytest.mark.parametrize("back", [False, True])
def test_a_full_disk_loses_nothing(plan: Callable[[Path], Plan[Host]], back: bool, tmp_path: Path) -> None:
    matrix = Matrix(tmp_path, node, plan)
    counting = FullDisk(1 << 30)
    run(matrix.fresh("counted"), matrix.plan, counting)
    for room in range(counting.writes):
        root = matrix.fresh("work")
        with pytest.raises((OSError, TakenBack, HalfDone)) as caught:
            run(root, matrix.plan, FullDisk(room))
        assert "No space left" in str(caught.value), room
        run(root, matrix.plan, Disk(), back=back)
        assert tree(root) == (matrix.before if back else matrix.after), room
