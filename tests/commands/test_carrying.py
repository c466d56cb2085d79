"""Plans on a node as a person meets them: one at a time, newest taken back first, listed with what they keep."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drtool.commands import carrying
from drtool.core.errors import HalfDone, NotFound, Refused, TakenBack, Unsound, UsageError
from drtool.core.plan import Event, Mark, Phase, Plan, encode
from drtool.host.journal import DiskJournal
from drtool.host.machine import Host
from drtool.host.root import Root
from drtool.plans.site import Draft
from manifests.editing import Set
from manifests.steps.files import ChangeMode, ParkFile, edit_yaml

DAY = datetime(2026, 11, 30, tzinfo=UTC)


def plan(number: int, root: Path) -> Plan[Host]:
    """Parks /etc/NUMBER."""
    (root / "etc").mkdir(exist_ok=True)
    (root / f"etc/{number}").write_text("x" * number)
    draft = Draft("test", f"park {number}", (ParkFile(f"/etc/{number}", f"/parked-{number}/{number}"),))
    return carrying.plan_of(draft, "lab", DAY.replace(hour=number))


def begun(root: Path, number: int) -> Plan[Host]:
    """A plan whose run was killed in its first step."""
    made = plan(number, root)
    journal = DiskJournal(Root(root), made.id)
    journal.start(encode(made))
    journal.record(Mark(Event.BEGUN, 0))
    return made


def test_plans_are_carried_out_and_taken_back_newest_first(tmp_path: Path) -> None:
    root = Root(tmp_path)
    one, two = plan(1, tmp_path), plan(2, tmp_path)
    carrying.start(root, one)
    carrying.start(root, two)
    with pytest.raises(Refused, match="was carried out after it") as caught:
        carrying.undo(root, one.id)
    assert two.id in caught.value.hint
    assert carrying.undo(root, "").id == two.id
    assert carrying.undo(root, "").id == one.id
    assert (tmp_path / "etc/1").exists()
    assert [found.state.phase for found in carrying.history(root)] == [Phase.TAKEN_BACK] * 2
    with pytest.raises(NotFound, match="no plan unfinished or done"):
        carrying.undo(root, "")


def test_an_undo_that_is_refused_leaves_the_plan_done(tmp_path: Path) -> None:
    """Else it would be unfinished, and no other plan could begin."""
    root, one = Root(tmp_path), plan(1, tmp_path)
    (tmp_path / "f.yaml").write_bytes(b"a: x\n")
    edits = edit_yaml("/f.yaml", b"a: x\n", (Set(("a",), "z"),))
    carrying.start(root, Plan(one.id, "", "lab", (*edits, *one.steps)))
    (tmp_path / "f.yaml").write_bytes(b"a: z\n# by hand\n")
    with pytest.raises(Refused, match=r"nothing was touched: step 1 .*/f.yaml was changed by someone else"):
        carrying.undo(root, "")
    assert not (tmp_path / "etc/1").exists()
    assert [found.state.phase for found in carrying.history(root)] == [Phase.DONE]
    carrying.start(root, plan(2, tmp_path))
    carrying.undo(root, "")
    (tmp_path / "f.yaml").write_bytes(b"a: z\n")
    carrying.undo(root, "")
    assert (tmp_path / "f.yaml").read_bytes() == b"a: x\n"
    assert (tmp_path / "etc/1").exists()


def test_an_undo_that_fails_in_the_middle_can_go_on_both_ways(tmp_path: Path) -> None:
    """What no step can foresee: here a mode that cannot be put back through a link."""
    root, one = Root(tmp_path), plan(1, tmp_path)
    key = tmp_path / "key"
    key.touch(0o644)
    key.chmod(0o644)
    carrying.start(root, Plan(one.id, "", "lab", (ChangeMode("/key", 0o644, 0o600), *one.steps)))
    for again in (carrying.resume, carrying.undo):
        key.rename(tmp_path / "elsewhere")
        key.symlink_to("elsewhere")
        with pytest.raises(HalfDone, match=f"the plan {one.id} is taken back in part: /key: ") as caught:
            carrying.undo(root, "")
        assert caught.value.exit_status == 22
        assert f"drtool undo {one.id}" in caught.value.hint
        assert (tmp_path / "etc/1").exists()
        assert carrying.unfinished(root, one.id)
        (tmp_path / "elsewhere").replace(key)
        again(root, "")
        assert not carrying.unfinished(root, one.id)
        assert (tmp_path / "etc/1").exists() is (again is carrying.undo)
    assert key.stat().st_mode & 0o777 == 0o644


def test_no_other_plan_begins_while_one_is_unfinished(tmp_path: Path) -> None:
    root, killed = Root(tmp_path), begun(tmp_path, 1)
    with pytest.raises(Refused, match="is unfinished") as caught:
        carrying.start(root, plan(2, tmp_path))
    assert f"drtool resume {killed.id}" in caught.value.hint
    assert carrying.resume(root, "").id == killed.id
    assert not (tmp_path / "etc/1").exists()
    carrying.start(root, plan(2, tmp_path))


def test_nothing_is_prepared_for_a_plan_that_may_not_begin(tmp_path: Path) -> None:
    root, called = Root(tmp_path), list[str]()
    killed = begun(tmp_path, 1)

    def start(number: int) -> None:
        prepare, discard = (lambda: called.append("prepared")), (lambda: called.append("discarded"))
        carrying.start(root, plan(number, tmp_path), prepare=prepare, discard=discard)

    with pytest.raises(Refused, match="is unfinished"):
        start(2)
    assert called == []
    carrying.undo(root, killed.id)
    start(3)
    assert called == ["prepared"]


def test_what_was_prepared_is_discarded_where_the_plan_does_not_begin(tmp_path: Path) -> None:
    called: list[str] = []
    (tmp_path / "var/lib/drtool").mkdir(parents=True)
    (tmp_path / "var/lib/drtool/plans").write_text("in the way")
    with pytest.raises(OSError, match="plans"):
        carrying.start(
            Root(tmp_path),
            plan(1, tmp_path),
            prepare=lambda: called.append("prepared"),
            discard=lambda: called.append("discarded"),
        )
    assert called == ["prepared", "discarded"]
    assert (tmp_path / "etc/1").exists()


def test_a_killed_plan_can_be_taken_back_too(tmp_path: Path) -> None:
    root, killed = Root(tmp_path), begun(tmp_path, 1)
    carrying.undo(root, killed.id[:20])
    assert (tmp_path / "etc/1").exists()
    with pytest.raises(UsageError, match="is taken back"):
        carrying.undo(root, killed.id)


def test_what_was_moved_aside_is_listed_with_its_size(tmp_path: Path) -> None:
    carrying.start(Root(tmp_path), plan(7, tmp_path))
    (found,) = carrying.history(Root(tmp_path))
    assert [(kept.path, kept.size) for kept in found.kept] == [("/parked-7/7", 7)]
    assert found.size == 7
    assert found.at.endswith("Z")
    assert len(carrying.durations(Root(tmp_path), found.plan.id)) == 1


def test_a_failing_plan_is_listed_with_its_reason(tmp_path: Path) -> None:
    made = plan(1, tmp_path)
    steps = (*made.steps, ChangeMode("/absent", 0, 0))
    with pytest.raises(TakenBack, match="absent"):
        carrying.start(Root(tmp_path), Plan(made.id, "", "lab", steps))
    (found,) = carrying.history(Root(tmp_path))
    assert found.state.phase is Phase.TAKEN_BACK
    assert "No such file" in found.state.failure


def test_a_plan_of_another_version_blocks_only_while_it_is_unfinished(tmp_path: Path) -> None:
    root, old = Root(tmp_path), begun(tmp_path, 1)
    file = tmp_path / f"var/lib/drtool/plans/{old.id}/plan.json"
    file.write_bytes(file.read_bytes().replace(b"ParkFile", b"ParkElsewhere"))
    with pytest.raises(Unsound, match="cannot be read"):
        carrying.start(root, plan(2, tmp_path))
    DiskJournal(root, old.id).record(Mark(Event.FINISHED))
    carrying.start(root, plan(3, tmp_path))
    assert [found.plan.title for found in carrying.history(root)] == ["park 3"]


@pytest.mark.parametrize("damage", [b"garbage", b""])
def test_a_plan_whose_file_is_damaged_is_told_and_not_passed_over(damage: bytes, tmp_path: Path) -> None:
    root, one, two = Root(tmp_path), plan(1, tmp_path), plan(2, tmp_path)
    carrying.start(root, one)
    carrying.start(root, two)
    file = tmp_path / f"var/lib/drtool/plans/{two.id}/plan.json"
    whole = file.read_bytes()
    file.write_bytes(damage)
    first, second = carrying.listed(root)
    assert (first.id, first.title, first.state.phase) == (one.id, "park 1", Phase.DONE)
    assert (second.id, second.state.phase) == (two.id, Phase.DONE)
    assert second.title.startswith(f"/var/lib/drtool/plans/{two.id}/plan.json: the plan's file cannot be read")
    with pytest.raises(Refused, match=f"was carried out after it, and /var/.*/{two.id}/plan.json"):
        carrying.undo(root, "")
    with pytest.raises(Unsound, match=f"{two.id}/plan.json: the plan's file cannot be read"):
        carrying.undo(root, two.id)
    assert not (tmp_path / "etc/1").exists()
    file.write_bytes(whole)
    carrying.undo(root, "")
    file.write_bytes(damage)
    carrying.undo(root, "")
    assert (tmp_path / "etc/1").exists()


def test_an_unfinished_plan_whose_file_is_lost_is_not_passed_over(tmp_path: Path) -> None:
    root, killed = Root(tmp_path), begun(tmp_path, 1)
    (tmp_path / f"var/lib/drtool/plans/{killed.id}/plan.json").unlink()
    assert [one.state.phase for one in carrying.listed(root)] == [Phase.UNFINISHED]
    with pytest.raises(Unsound, match=f"the unfinished plan {killed.id}"):
        carrying.start(root, plan(2, tmp_path))


PROGRAM = """
import sys, time
from dataclasses import dataclass
from pathlib import Path
from drtool.cli._plan import telling
from drtool.core.plan import Plan, carry_out, encode
from drtool.host.journal import DiskJournal
from drtool.host.root import Root

@dataclass(frozen=True)
class Slow:
    number: int
    def describe(self): return f"step {self.number}"
    def apply(self, host):
        print("at", self.number, flush=True)
        sys.stdin.readline()
    def revert(self, host): pass

root = Root(Path(sys.argv[1]))
plan = Plan("20261130T080000Z-test-0a1b2c", "slow", "lab", (Slow(1), Slow(2), Slow(3)))
journal = DiskJournal(root, plan.id)
journal.start(encode(plan))
with telling(root, plan, True) as tell:
    carry_out(plan, None, journal, tell)
print("done", flush=True)
"""


def test_a_lost_session_does_not_stop_the_plan(tmp_path: Path) -> None:
    """The terminal hangs up and nobody reads what is told: the run goes on to its end."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:  # fmt: skip
        assert run.stdin is not None
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stdout.readline() == b"at 1\n"
        run.stderr.close()
        run.send_signal(signal.SIGHUP)
        run.stdin.write(b"\n\n\n")
        run.stdin.flush()
        assert run.stdout.read() == b"at 2\nat 3\ndone\n"
        assert run.wait() == 0


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as run:  # fmt: skip
        assert run.stdout is not None
        run.stdout.readline()
        run.send_signal(signal.SIGINT)
        _, said = run.communicate()
    assert b"drtool resume 20261130T080000Z-test-0a1b2c goes on with it" in said
    marks = DiskJournal(Root(tmp_path), "20261130T080000Z-test-0a1b2c").marks()
    assert [mark.event for mark in marks] == [Event.BEGUN]
