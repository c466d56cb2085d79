"""Plans on a node: start one, resume it, take it back, list what there is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from drtool.commands import practice
from drtool.commands.scratch_marker import rehearsed
from drtool.core.errors import DrtoolError, NotFound, Refused, Unsound, UsageError
from drtool.core.plan import (
    Event,
    Keeps,
    Phase,
    Plan,
    State,
    Step,
    Tell,
    carry_out,
    decode,
    encode,
    half_done,
    state,
    untold,
)
from drtool.core.plan import undo as take_back
from drtool.host.cri import SOCKETS, Runtime
from drtool.host.journal import DiskJournal, lock, plans
from drtool.host.machine import Host
from drtool.host.processes import Proc
from drtool.host.root import Root
from drtool.host.systemd import Systemd
from drtool.plans.catalogue import STEPS
from drtool.plans.practice import without_api_server
from drtool.plans.site import Draft, plan_id
from manifests.document import Unparsable, parse
from manifests.steps.files import EditFile

LARGEST_TEXT = 1 << 20
KUBELET_CONFIGS = ("/var/lib/kubelet/instance-config.yaml", "/var/lib/kubelet/config.yaml")


@dataclass(frozen=True, slots=True)
class Kept:
    """What a plan moved aside or copied: where it lies, and its bytes."""

    path: str
    size: int


@dataclass(frozen=True, slots=True)
class Carried:
    """A plan of this node, as its journal tells it. `at` is its last mark (RFC 3339)."""

    plan: Plan[Host]
    state: State
    at: str
    kept: tuple[Kept, ...]

    @property
    def id(self) -> str:
        return self.plan.id

    @property
    def title(self) -> str:
        return self.plan.title

    @property
    def size(self) -> int:
        return sum(kept.size for kept in self.kept)


@dataclass(frozen=True, slots=True)
class Unread:
    """A plan of this node whose file cannot be read: it was damaged, or written by another version of drtool.

    `title` says which file and why, in the place of what the plan does.
    """

    id: str
    state: State
    at: str
    kept: tuple[Kept, ...]
    title: str
    hint: str


def plan_of(draft: Draft, cluster: str, now: datetime | None = None) -> Plan[Host]:
    name = plan_id(draft.name, now or datetime.now(UTC))
    return Plan(name, draft.title, cluster, draft.steps, draft.by_hand)


def host(root: Root, plan: str) -> Host:
    """This machine, or the scratch node of a rehearsal, for the steps of one plan."""
    marker = rehearsed(root)
    if marker is not None:
        return practice.host(root, plan, marker)
    return Host(root, plan, Systemd(), Runtime(_socket(root)), Proc())


def fitted(root: Root, plan: Plan[Host]) -> Plan[Host]:
    """The plan as it can be carried out on this root: as it is, unless that is a rehearsal's."""
    return plan if rehearsed(root) is None else without_api_server(plan)


def _socket(root: Root) -> Path:
    """The runtime's socket as the kubelet's configuration names it, else the first that is there."""
    for path in KUBELET_CONFIGS:
        try:
            named = parse(path, root.read(path, 1 << 20).data or b"")[0].get("containerRuntimeEndpoint")
        except (Unparsable, IndexError):
            continue
        if named:
            return root.directory / str(named).removeprefix("unix://").lstrip("/")
    there = (path for path in SOCKETS if root.read(path, 0).kind == "socket")
    return root.directory / next(there, SOCKETS[0]).lstrip("/")


def nothing() -> None:
    """For plans that need nothing made beforehand."""


def start(
    root: Root,
    plan: Plan[Host],
    tell: Tell = untold,
    prepare: Callable[[], None] = nothing,
    discard: Callable[[], None] = nothing,
) -> None:
    """Carry out a plan that was printed and agreed to. Refuses while another one is unfinished.

    `prepare` makes what the plan needs, once it may begin; `discard` removes it again where no step was begun.
    """
    with lock(root):
        for other in history(root):
            if other.state.phase is Phase.UNFINISHED:
                raise Refused(
                    f"the plan {other.plan.id} ({other.plan.title}) is unfinished",
                    f"drtool resume {other.plan.id} goes on with it, drtool undo {other.plan.id} takes it back",
                )
        journal = DiskJournal(root, plan.id)
        try:
            prepare()
            journal.start(encode(plan))
            carry_out(plan, host(root, plan.id), journal, tell)
        except BaseException:
            if state(journal.marks()).phase is Phase.READY:
                discard()
            raise


def unfinished(root: Root, plan: str) -> bool:
    """Whether the journal of this plan has begun steps that are neither all done nor all taken back."""
    return state(DiskJournal(root, plan).marks()).phase is Phase.UNFINISHED


def resume(root: Root, name: str, tell: Tell = untold) -> Plan[Host]:
    """Go on with a plan that was killed or interrupted, from the step it was at."""
    with lock(root):
        found = find(root, name, Phase.UNFINISHED)
        carry_out(found.plan, host(root, found.plan.id), DiskJournal(root, found.plan.id), tell)
        return found.plan


def undo(root: Root, name: str, tell: Tell = untold) -> Plan[Host]:
    """Take a plan back, newest step first. Only the newest plan that stands may be taken back.

    What fails before the first step is touched is passed on, and the plan stays as it was; HalfDone after that: the
    plan is unfinished, and both going on with it and taking it back again begin at the step that failed.
    """
    with lock(root):
        found = find(root, name, Phase.UNFINISHED, Phase.DONE)
        later = [
            one for one in history(root) if one.plan.id > found.plan.id and one.state.phase is not Phase.TAKEN_BACK
        ]
        for one in _unread(root, "", Phase.UNFINISHED, Phase.DONE):
            if one.id > found.plan.id:
                raise Refused(f"a plan was carried out after it, and {one.title}", one.hint)
        if later:
            raise Refused(
                f"the plan {later[-1].plan.id} ({later[-1].plan.title}) was carried out after it",
                f"take that one back first: drtool undo {later[-1].plan.id}",
            )
        journal = DiskJournal(root, found.plan.id)
        before = journal.marks()
        try:
            take_back(found.plan, host(root, found.plan.id), journal, tell)
        except Exception as failure:
            if journal.marks() == before:
                raise
            raise half_done(found.plan, f"the plan {found.plan.id} is taken back in part", failure) from failure
        return found.plan


def diff(root: Root, plan: Plan[Host]) -> tuple[str, ...]:
    """Of every text that the plan edits, the lines that it changes or changed, from the files as they are now."""
    edits = [step for step in plan.steps if isinstance(step, EditFile)]
    return tuple(line for step in edits for line in step.diff(root.read(step.path, LARGEST_TEXT).data or b""))


def find(root: Root, name: str, *phases: Phase) -> Carried:
    """The plan of that id (or its beginning); without a name, the newest in one of the phases."""
    known = [one for one in history(root) if one.plan.id.startswith(name)]
    fitting = [one for one in known if one.state.phase in phases]
    if name and known and not fitting:
        raise UsageError(f"the plan {known[-1].plan.id} is {known[-1].state.phase}")
    if name and len(fitting) > 1:
        raise UsageError(f"{name} begins {len(fitting)} plans' ids", "drtool undo --list shows them")
    for one in _unread(root, name, *phases) if not fitting else ():
        raise Unsound(one.title, one.hint)
    if not fitting:
        raise NotFound(f"no plan {name or ' or '.join(phases)} on this node", "drtool undo --list shows what there is")
    return fitting[-1]


def durations(root: Root, plan: str) -> tuple[float, ...]:
    """Seconds that each step took when it was last applied, in their order."""
    begun: dict[int, datetime] = {}
    took: dict[int, float] = {}
    for mark in DiskJournal(root, plan).marks():
        at = datetime.fromisoformat(mark.at)
        if mark.event is Event.BEGUN:
            begun[mark.step] = at
        elif mark.event is Event.DONE:
            took[mark.step] = (at - begun[mark.step]).total_seconds()
    return tuple(took[step] for step in sorted(took))


def history(root: Root) -> tuple[Carried, ...]:
    """Every plan that was begun on this node, oldest first.

    A finished one that cannot be read (it is of another version of drtool) is left out; an unfinished one must not be.
    """
    for unfinished in _unread(root, "", Phase.UNFINISHED):
        raise Unsound(f"the unfinished plan {unfinished.id}: {unfinished.title}", unfinished.hint)
    return tuple(one for one in listed(root) if isinstance(one, Carried))


def listed(root: Root) -> tuple[Carried | Unread, ...]:
    """Every plan that was begun on this node, oldest first, whether it can be read or not."""
    return tuple(_listed(root, journal) for journal in plans(root))


def _unread(root: Root, name: str, *phases: Phase) -> list[Unread]:
    """Newest first, of those whose id begins so."""
    found = [one for one in reversed(listed(root)) if isinstance(one, Unread)]
    return [one for one in found if one.id.startswith(name) and one.state.phase in phases]


def _listed(root: Root, journal: DiskJournal) -> Carried | Unread:
    marks = journal.marks()
    now, at = state(marks), marks[-1].at if marks else ""
    try:
        plan = decode(journal.encoded(), STEPS)
    except DrtoolError as broken:
        kept = tuple(_kept(root, journal.plan, ()))
        return Unread(journal.plan, now, at, kept, f"{journal.file}: {broken.what}", broken.hint)
    return Carried(plan, now, at, tuple(_kept(root, plan.id, plan.steps)))


def _kept(root: Root, plan: str, steps: tuple[Step[Host], ...]) -> Iterator[Kept]:
    places = [place for step in steps if isinstance(step, Keeps) for place in step.kept(plan)]
    for place in dict.fromkeys((f"/var/lib/drtool/plans/{plan}/aside", *places)):
        size = _size(root.directory / place.lstrip("/"))
        if size is not None:
            yield Kept(place, size)


def _size(place: Path) -> int | None:
    """Bytes of a file or of all below a directory; None where there is nothing."""
    if not os.path.lexists(place):
        return None
    if not place.is_dir() or place.is_symlink():
        return place.lstat().st_size
    return sum((Path(base) / name).lstat().st_size for base, _, names in os.walk(place) for name in names)
