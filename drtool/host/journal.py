"""Plans on the node's disk: /var/lib/drtool/plans/ID/{plan.json,journal}, and the lock that one run holds.

plan.json   the plan as `core.plan.encode` wrote it, complete or absent
journal     one JSON object a line, synced before the step it speaks of; a torn last line counts as not written
aside/      copies of small files as they were, under their own paths
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from drtool.core.errors import Locked
from drtool.core.plan import PLAN_ID, Mark
from drtool.host.disk import Disk, directory, named
from drtool.host.machine import STATE
from drtool.host.root import Root
from drtool.host.writing import sync_directory

PLANS = f"{STATE}/plans"
LARGEST = 16 << 20


@dataclass(frozen=True, slots=True)
class DiskJournal:
    """The journal of one plan under `root`; implements core.plan.Journal."""

    root: Root
    plan: str
    disk: Disk = field(default_factory=Disk)

    def start(self, encoded: bytes) -> None:
        """Write the plan itself, before its first step."""
        place = self.root.directory / PLANS.lstrip("/") / self.plan
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_directory(place.parent)
        with named(self.file), directory(place.absolute()) as parent:
            self.disk.create(parent, ".plan.json.part", encoded, 0o600, (os.geteuid(), os.getegid()))
            self.disk.replace(parent, ".plan.json.part", "plan.json")

    @property
    def file(self) -> str:
        return f"{PLANS}/{self.plan}/plan.json"

    def encoded(self) -> bytes:
        return self._read("plan.json")

    def record(self, mark: Mark) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = msgspec.json.encode(Mark(mark.event, mark.step, mark.reason, mark.at or at)) + b"\n"
        torn = self._read("journal")[-1:] not in (b"", b"\n")
        place = self.root.directory / PLANS.lstrip("/") / self.plan
        with named(f"{PLANS}/{self.plan}/journal"), directory(place.absolute()) as parent:
            self.disk.append(parent, "journal", b"\n" + line if torn else line)

    def marks(self) -> tuple[Mark, ...]:
        return tuple(_marks(self._read("journal")))

    def _read(self, name: str) -> bytes:
        return self.root.read(f"{PLANS}/{self.plan}/{name}", LARGEST).data or b""


def _marks(data: bytes) -> Iterator[Mark]:
    for line in data.splitlines():
        try:
            yield msgspec.json.decode(line, type=Mark)
        except msgspec.MsgspecError:
            continue


def plans(root: Root) -> tuple[DiskJournal, ...]:
    """Every plan that was ever started on this node, oldest first; one whose plan.json was lost since, too."""
    names = [name for name in root.names(PLANS) if PLAN_ID.fullmatch(name)]
    found = (DiskJournal(root, name) for name in names)
    return tuple(journal for journal in found if journal.encoded() or journal.marks())


@contextmanager
def lock(root: Root) -> Iterator[None]:
    """Held while a plan is carried out. Raises Locked where another run holds it."""
    place = root.directory / STATE.lstrip("/")
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as held:
        os.close(descriptor)
        raise Locked("another drtool run is changing this node", f"see who holds {STATE}/lock (fuser)") from held
    try:
        yield
    finally:
        os.close(descriptor)
