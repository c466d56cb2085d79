from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from drtool.core.errors import Locked
from drtool.core.plan import Event, Mark
from drtool.host.journal import PLANS, DiskJournal, lock, plans
from drtool.host.root import Root
from tests.fakes.host import PLAN


def test_marks_come_back_in_order_with_the_time(tmp_path: Path) -> None:
    journal = DiskJournal(Root(tmp_path), PLAN)
    journal.start(b"{}")
    journal.record(Mark(Event.BEGUN, 0))
    journal.record(Mark(Event.FAILED, 0, "no space"))
    begun, failed = journal.marks()
    assert (begun.event, failed.event, failed.reason) == (Event.BEGUN, Event.FAILED, "no space")
    assert begun.at.endswith("Z")


def test_a_torn_line_counts_as_not_written_and_harms_no_later_one(tmp_path: Path) -> None:
    journal = DiskJournal(Root(tmp_path), PLAN)
    journal.start(b"{}")
    journal.record(Mark(Event.BEGUN, 0))
    file = tmp_path / PLANS.lstrip("/") / PLAN / "journal"
    whole = file.read_bytes()
    for cut in range(len(whole)):
        file.write_bytes(whole + whole[:cut])
        journal.record(Mark(Event.DONE, 0))
        events = [mark.event for mark in journal.marks()]
        assert events[0] is Event.BEGUN
        assert events[-1] is Event.DONE


def test_a_plan_without_its_file_was_never_started(tmp_path: Path) -> None:
    (tmp_path / PLANS.lstrip("/") / PLAN).mkdir(parents=True)
    (tmp_path / PLANS.lstrip("/") / "not-a-plan").mkdir()
    assert plans(Root(tmp_path)) == ()
    DiskJournal(Root(tmp_path), PLAN).start(b"{}")
    assert [journal.plan for journal in plans(Root(tmp_path))] == [PLAN]


def test_the_plan_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    DiskJournal(Root(tmp_path), PLAN).start(b"{}")
    place = tmp_path / PLANS.lstrip("/") / PLAN
    assert place.stat().st_mode & 0o077 == 0
    assert (place / "plan.json").stat().st_mode & 0o077 == 0


def test_only_one_run_at_a_time(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from drtool.host.journal import lock; from drtool.host.root import Root\n"
        "with lock(Root(Path(sys.argv[1]))):\n    print('held', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(Locked, match="another drtool run"), lock(Root(tmp_path)):
            pass
        holder.communicate()
    with lock(Root(tmp_path)):
        pass
