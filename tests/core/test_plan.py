"""The engine on steps that only remember: order, failure, resuming, taking back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drtool.core.errors import HalfDone, Refused, TakenBack, Unsound
from drtool.core.plan import Ahead, Event, Mark, Phase, Plan, carry_out, decode, encode, state, undo


@dataclass
class World:
    present: list[str] = field(default_factory=list)
    refuses: str = ""
    keeps: str = ""


@dataclass(frozen=True)
class Put:
    name: str
    note: str = ""

    def describe(self) -> str:
        return f"put {self.name}"

    def apply(self, host: World) -> None:
        if host.refuses == self.name:
            raise Refused(f"{self.name} is not wanted", "leave it")
        if self.name not in host.present:
            host.present.append(self.name)

    def revert(self, host: World) -> None:
        if host.keeps == self.name:
            raise Refused(f"{self.name} stays")
        if self.name in host.present:
            host.present.remove(self.name)


@dataclass
class Memory:
    written: list[Mark] = field(default_factory=list)

    def record(self, mark: Mark) -> None:
        self.written.append(mark)

    def marks(self) -> tuple[Mark, ...]:
        return tuple(self.written)


PLAN: Plan[World] = Plan("20261130T080000Z-test-000000", "three things", "lab", (Put("a"), Put("b"), Put("c")), ("d",))


def test_steps_are_printed_with_their_numbers() -> None:
    assert PLAN.lines() == ("1. put a", "2. put b", "3. put c")


def test_a_mark_is_recorded_before_and_after_each_step() -> None:
    journal, told = Memory(), []
    carry_out(PLAN, World(), journal, told.append)
    assert [(mark.event, mark.step) for mark in journal.written] == [
        (Event.BEGUN, 0), (Event.DONE, 0), (Event.BEGUN, 1), (Event.DONE, 1), (Event.BEGUN, 2), (Event.DONE, 2),
        (Event.FINISHED, 0),
    ]  # fmt: skip
    assert told == journal.written
    assert state(journal.marks()).phase is Phase.DONE


def test_carrying_out_a_finished_plan_again_does_nothing() -> None:
    journal, world = Memory(), World()
    carry_out(PLAN, world, journal)
    before = list(journal.written)
    carry_out(PLAN, world, journal)
    assert journal.written == before


def test_a_failing_step_takes_everything_back() -> None:
    journal, world = Memory(), World(refuses="b")
    with pytest.raises(TakenBack, match=r"step 2 .put b. failed .*b is not wanted") as caught:
        carry_out(PLAN, world, journal)
    assert caught.value.exit_status == 21
    assert caught.value.hint == "leave it"
    assert world.present == []
    assert state(journal.marks()).phase is Phase.TAKEN_BACK
    assert "b is not wanted" in state(journal.marks()).failure


def test_a_failing_revert_says_how_to_go_on() -> None:
    journal, world = Memory(), World(refuses="c", keeps="a")
    with pytest.raises(HalfDone, match=r"c is not wanted.*a stays") as caught:
        carry_out(PLAN, world, journal)
    assert caught.value.exit_status == 22
    assert PLAN.id in caught.value.hint
    assert world.present == ["a"]
    world.keeps = ""
    undo(PLAN, world, journal)
    assert world.present == []


@dataclass(frozen=True)
class Foreseeing(Put):
    """Cannot be taken back once what it put is not there; the newest thing goes first."""

    def foresee(self, host: World, ahead: Ahead, complete: bool) -> None:
        if complete and self.name not in host.present:
            raise Refused(f"{self.name} is gone", "put it back")
        ahead.becomes(self.name, "")


def test_all_steps_are_asked_before_the_first_is_taken_back() -> None:
    plan: Plan[World] = Plan(PLAN.id, "", "lab", (Put("z"), Foreseeing("a"), Put("b")))
    journal, world = Memory(), World()
    carry_out(plan, world, journal)
    world.present.remove("a")
    before = list(journal.written)
    with pytest.raises(Refused, match=r"nothing was touched: step 2 .put a. cannot be taken back: a is gone") as caught:
        undo(plan, world, journal)
    assert caught.value.hint == "put it back"
    assert world.present == ["z", "b"]
    assert journal.written == before
    assert state(journal.marks()).phase is Phase.DONE
    world.present.append("a")
    undo(plan, world, journal)
    assert world.present == []


def test_a_step_that_was_not_complete_needs_nothing_put_aside() -> None:
    plan: Plan[World] = Plan(PLAN.id, "", "lab", (Put("z"), Foreseeing("a")))
    journal, world = Memory(), World(refuses="a")
    with pytest.raises(TakenBack, match="a is not wanted"):
        carry_out(plan, world, journal)
    assert world.present == []


def test_files_as_they_will_be() -> None:
    ahead = Ahead()
    assert ahead.of("/a") == "/a"
    ahead.moves("/a", "/b")
    ahead.moves("/b", "/c")
    assert [ahead.of(path) for path in ("/a", "/b", "/c")] == ["", "", "/a"]
    ahead.becomes("/c", "0f")
    ahead.moves("/c", "/a")
    assert ahead.of("/a") == "0f"


def test_an_interrupt_leaves_the_plan_to_be_resumed() -> None:
    class Interrupting(World):
        pass

    @dataclass(frozen=True)
    class Stop(Put):
        def apply(self, host: World) -> None:
            if isinstance(host, Interrupting):
                raise KeyboardInterrupt
            super().apply(host)

    plan: Plan[World] = Plan(PLAN.id, "", "lab", (Put("a"), Stop("b"), Put("c")))
    journal, world = Memory(), Interrupting()
    with pytest.raises(KeyboardInterrupt):
        carry_out(plan, world, journal)
    assert state(journal.marks()).phase is Phase.UNFINISHED
    assert world.present == ["a"]
    resumed = World(present=world.present)
    carry_out(plan, resumed, journal)
    assert resumed.present == ["a", "b", "c"]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=8))
def test_whatever_was_interrupted_the_way_ends_complete_or_empty(runs: list[tuple[bool, int]]) -> None:
    class Interrupted(Exception):
        pass

    class Short(Memory):
        left = 0

        def record(self, mark: Mark) -> None:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            super().record(mark)

    journal, world = Short(), World()
    for forward, marks in runs:
        journal.left = marks
        with suppress(KeyboardInterrupt):
            (carry_out if forward else undo)(PLAN, world, journal)
        at = state(journal.marks())
        assert at.applied <= at.touched <= at.applied + 1
        assert set(world.present) <= {"a", "b", "c"[: at.touched]}
    journal.left = 100
    carry_out(PLAN, world, journal)
    assert sorted(world.present) == ["a", "b", "c"]
    undo(PLAN, world, journal)
    assert world.present == []
    assert state(journal.marks()).phase is Phase.TAKEN_BACK


def test_a_plan_survives_its_file() -> None:
    assert decode(encode(PLAN), {"Put": Put}) == PLAN


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"\xff", b'{"schemaVersion": 1, "steps": 3}', encode(PLAN)])
def test_a_plan_that_cannot_be_read_is_one_clear_error(data: bytes) -> None:
    with pytest.raises(Unsound, match="plan's file"):
        decode(data, {})


def test_a_plan_of_another_format_is_refused() -> None:
    with pytest.raises(Refused, match="another version"):
        decode(encode(PLAN).replace(b'"schemaVersion": 1', b'"schemaVersion": 2'), {"Put": Put})
