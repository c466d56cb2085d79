"""A repair as data: steps in order, a journal of what became of them, and the way back.

    marks:  begun 0, done 0, begun 1, ... finished          the journal, durable before each step
    state:  applied  steps 0 .. applied-1 are complete
            touched  steps 0 .. touched-1 may have left something on the host; touched is applied or one more

`apply` and `revert` of a step can be repeated, and either can follow the other's being killed at any point: that is all
the engine asks for, and it makes resuming and taking back the same walk in two directions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from drtool.core.errors import DrtoolError, HalfDone, Refused, TakenBack, Unsound, what_to_do

SCHEMA_VERSION = 1
PLAN_ID = re.compile(r"\d{8}T\d{6}Z-[a-z-]+-[0-9a-f]{6}")

H = TypeVar("H")
Contra = TypeVar("Contra", contravariant=True)


class Step(Protocol[Contra]):
    """One change to a host, as a frozen dataclass of plain fields (it is written to the journal as JSON).

    `describe` is one line, and the step's dry run. `apply` and `revert` may each be called again after a kill at any
    point inside either. They raise DrtoolError where the host is not as the plan found it; then nothing was changed.
    """

    def describe(self) -> str: ...
    def apply(self, host: Contra) -> None: ...
    def revert(self, host: Contra) -> None: ...


@runtime_checkable
class Keeps(Protocol):
    """A step that moves things aside says where they lie, given the plan's id: nothing on a node is deleted."""

    def kept(self, plan: str) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Ahead:
    """Files as they will be once the newer steps are taken back, by path: nothing of it is done yet.

    A value is the path where those bytes lie now, or their sha256 in hex, or "" where there will be no file.
    """

    known: dict[str, str] = field(default_factory=dict)

    def of(self, path: str) -> str:
        return self.known.get(path, path)

    def moves(self, path: str, to: str) -> None:
        self.known[to] = self.of(path)
        self.known[path] = ""

    def becomes(self, path: str, digest: str) -> None:
        self.known[path] = digest


@runtime_checkable
class Foresees(Protocol[Contra]):
    """A step whose way back needs something that may be gone by then: all are asked before the first is taken back.

    `foresee` raises Refused, naming what is gone or was changed, and else notes in `ahead` what its way back leaves.
    It changes nothing on the host. `complete` where `apply` had come to its end: only then must all be there.
    """

    def foresee(self, host: Contra, ahead: Ahead, complete: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Plan(Generic[H]):
    """What will be done, in order. `cluster` is the name a person types to agree; `by_hand` what drtool cannot do."""

    id: str
    title: str
    cluster: str
    steps: tuple[Step[H], ...]
    by_hand: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        return tuple(f"{number}. {step.describe()}" for number, step in enumerate(self.steps, 1))


class Event(StrEnum):
    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"
    UNDOING = "undoing"
    UNDONE = "undone"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of the journal: what happened to step number `step`, counted from 0, and when (RFC 3339)."""

    event: Event
    step: int = 0
    reason: str = ""
    at: str = ""


class Journal(Protocol):
    """Remembers marks in order. `record` returns once the mark outlives a power cut."""

    def record(self, mark: Mark) -> None: ...
    def marks(self) -> tuple[Mark, ...]: ...


class Phase(StrEnum):
    READY = "ready"
    UNFINISHED = "unfinished"
    DONE = "done"
    TAKEN_BACK = "taken back"


@dataclass(frozen=True, slots=True)
class State:
    applied: int = 0
    touched: int = 0
    phase: Phase = Phase.READY
    failure: str = ""


def state(marks: Iterable[Mark]) -> State:
    """Where a plan stands after these marks."""
    applied = touched = 0
    phase, failure = Phase.READY, ""
    for mark in marks:
        match mark.event:
            case Event.BEGUN:
                touched, phase = mark.step + 1, Phase.UNFINISHED
            case Event.DONE:
                applied = mark.step + 1
            case Event.FAILED:
                failure = mark.reason
            case Event.UNDOING:
                applied, phase = mark.step, Phase.UNFINISHED
            case Event.UNDONE:
                touched, phase = mark.step, Phase.TAKEN_BACK if mark.step == 0 else Phase.UNFINISHED
            case Event.FINISHED:
                phase = Phase.DONE
    return State(applied, touched, phase, failure)


Tell = Callable[[Mark], None]


def untold(_: Mark) -> None:
    """For callers that do not want to know."""


def carry_out(plan: Plan[H], host: H, journal: Journal, tell: Tell = untold) -> None:
    """Apply what is not applied yet: a fresh plan from its first step, a killed one from where it was.

    Where a step fails, all are taken back, newest first, and TakenBack is raised; where that fails too, HalfDone. A
    KeyboardInterrupt or a kill leaves the plan unfinished: carry it out again, or undo it.
    """
    for number in range(state(journal.marks()).applied, len(plan.steps)):
        _say(journal, tell, Mark(Event.BEGUN, number))
        try:
            plan.steps[number].apply(host)
        except Exception as failure:
            _say(journal, tell, Mark(Event.FAILED, number, str(failure)))
            _take_back(plan, host, journal, tell, failure)
            what = f"step {number + 1} ({plan.steps[number].describe()}) failed and the plan was taken back"
            raise TakenBack(f"{what}: {_what(failure)}", _hint(failure)) from failure
        _say(journal, tell, Mark(Event.DONE, number))
    if state(journal.marks()).phase is not Phase.DONE:
        _say(journal, tell, Mark(Event.FINISHED))


def _take_back(plan: Plan[H], host: H, journal: Journal, tell: Tell, failure: Exception) -> None:
    try:
        undo(plan, host, journal, tell)
    except Exception as second:  # noqa: BLE001 - whatever it was, both failures must be told
        raise half_done(plan, f"{_what(failure)}; taking the plan back then failed", second) from failure


def half_done(plan: Plan[H], what: str, failure: Exception) -> HalfDone:
    """The error of a plan that a failing revert left between done and taken back."""
    then = f"once that is put right: drtool undo {plan.id}"
    return HalfDone(f"{what}: {_what(failure)}", "; ".join(filter(None, (_hint(failure), then))))


def _what(failure: Exception) -> str:
    if isinstance(failure, OSError) and failure.strerror:
        return f"{failure.filename}: {failure.strerror}" if failure.filename else failure.strerror
    return failure.what if isinstance(failure, DrtoolError) else f"{type(failure).__name__}: {failure}"


def _hint(failure: Exception) -> str:
    return what_to_do(failure.errno) if isinstance(failure, OSError) else str(getattr(failure, "hint", ""))


def undo(plan: Plan[H], host: H, journal: Journal, tell: Tell = untold) -> None:
    """Take back every step that may have left something, newest first. What a revert raises is passed on.

    Refused, before anything is touched or written to the journal, where a step knows that it cannot be taken back.
    """
    _foresee(plan, host, state(journal.marks()))
    for number in reversed(range(state(journal.marks()).touched)):
        _say(journal, tell, Mark(Event.UNDOING, number))
        plan.steps[number].revert(host)
        _say(journal, tell, Mark(Event.UNDONE, number))


def _foresee(plan: Plan[H], host: H, now: State) -> None:
    ahead = Ahead()
    for number in reversed(range(now.touched)):
        step = plan.steps[number]
        if not isinstance(step, Foresees):
            continue
        try:
            step.foresee(host, ahead, number < now.applied)
        except Refused as why:
            what = f"nothing was touched: step {number + 1} ({step.describe()}) cannot be taken back: {why.what}"
            raise Refused(what, why.hint) from why


def _say(journal: Journal, tell: Tell, mark: Mark) -> None:
    journal.record(mark)
    tell(mark)


def encode(plan: Plan[Any]) -> bytes:
    """The plan as JSON: each step with its class's name under "step"."""
    steps = [{"step": type(step).__name__, **msgspec.to_builtins(step)} for step in plan.steps]
    data = {"schemaVersion": SCHEMA_VERSION}
    data |= {one.name: getattr(plan, one.name) for one in fields(plan)} | {"steps": steps}
    return msgspec.json.format(msgspec.json.encode(data), indent=1)


def decode(data: bytes, steps: Mapping[str, type]) -> Plan[Any]:
    """The plan that `encode` wrote; `steps` are the step classes by name. Raises Unsound for anything else."""
    try:
        raw = msgspec.json.decode(data)
        if raw.pop("schemaVersion") != SCHEMA_VERSION:
            raise Refused("the plan was written by another version of drtool", "use that version to take it back")
        made: list[Step[Any]] = [msgspec.convert(step, steps[step.pop("step")]) for step in raw.pop("steps")]
        return Plan(raw["id"], raw["title"], raw["cluster"], tuple(made), tuple(raw["by_hand"]))
    except DrtoolError:
        raise
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError) as broken:
        raise Unsound(
            f"the plan's file cannot be read: {broken!r}", "it was edited, or written by another version"
        ) from broken
