"""Steps on etcd's member list, each through raft."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drtool.core.errors import DrtoolError, Refused
from drtool.core.plan import Ahead
from drtool.host.machine import Host, lost
from snapshots.steps.data import Access

if TYPE_CHECKING:
    from snapshots.etcd import Etcd, Member


@dataclass(frozen=True, slots=True)
class UpdateMember:
    """The peer URLs of one member in the member list, through raft: its data stays as it is."""

    access: Access
    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]

    def describe(self) -> str:
        return f"etcd's member {self.name}: peer URL {', '.join(self.old)} -> {', '.join(self.new)}"

    def apply(self, host: Host) -> None:
        self._turn(host, self.old, self.new)

    def revert(self, host: Host) -> None:
        if host.remembered(self._memory) is not None:
            self._turn(host, self.new, self.old)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:  # noqa: ARG002 - a step's signature
        if complete and host.remembered(self._memory) is None:
            raise lost(host.memory(self._memory))

    @property
    def _memory(self) -> str:
        return f"etcd-member-{self.name}"

    def _turn(self, host: Host, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        def update(etcd: Etcd) -> None:
            member = next(iter(self._mine(etcd.members())), None)
            if member is None:
                raise Refused(f"etcd has no member {self.name} with peer URL {' or '.join((*old, *new))}")
            host.remember(self._memory, b"")
            if set(member.peer_urls) != set(new):
                etcd.update_member(member.id, new)

        self.access.ask(host, update)

    def _mine(self, members: tuple[Member, ...]) -> Iterator[Member]:
        known = {*self.old, *self.new}
        return (one for one in members if known & set(one.peer_urls))


@dataclass(frozen=True, slots=True)
class AddMember:
    """A new member as a learner: it has no vote, so the others need it for nothing until it has caught up."""

    access: Access
    name: str
    peer_urls: tuple[str, ...]

    def describe(self) -> str:
        return f"add {self.name} ({', '.join(self.peer_urls)}) to etcd's members, as a learner"

    def apply(self, host: Host) -> None:
        def add(etcd: Etcd) -> None:
            host.remember(self._memory, b"")
            if not any(set(one.peer_urls) & set(self.peer_urls) for one in etcd.members()):
                etcd.add_member(self.peer_urls, learner=True)

        self.access.ask(host, add)

    def revert(self, host: Host) -> None:
        if host.remembered(self._memory) is not None:
            self.access.ask(host, lambda etcd: remove(etcd, self.peer_urls))

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:  # noqa: ARG002 - a step's signature
        if complete and host.remembered(self._memory) is None:
            raise lost(host.memory(self._memory))

    @property
    def _memory(self) -> str:
        return f"etcd-added-{self.name}"


def remove(etcd: Etcd, peer_urls: tuple[str, ...]) -> None:
    for one in etcd.members():
        if set(one.peer_urls) & set(peer_urls):
            etcd.remove_member(one.id)


@dataclass(frozen=True, slots=True)
class PromoteMember:
    """The learner becomes a voter, which etcd allows once it has caught up."""

    access: Access
    name: str
    peer_urls: tuple[str, ...]
    seconds: float = 600.0

    def describe(self) -> str:
        return f"wait until {self.name} has caught up, and make it a voting member"

    def apply(self, host: Host) -> None:
        host.wait(lambda: self.access.ask(host, self._promoted), self.seconds, f"{self.name} does not catch up")

    def _promoted(self, etcd: Etcd) -> str:
        mine = next((one for one in etcd.members() if set(one.peer_urls) & set(self.peer_urls)), None)
        if mine is None:
            raise Refused(f"{self.name} is no longer among etcd's members")
        if not mine.learner:
            return ""
        try:
            etcd.promote_member(mine.id)
        except DrtoolError as early:
            return early.what
        return ""

    def revert(self, host: Host) -> None:
        """The member is removed as a whole by the step that added it."""


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """A dead member out of the list, so that it no longer counts for the quorum."""

    access: Access
    id: str
    name: str
    peer_urls: tuple[str, ...]

    def describe(self) -> str:
        return f"remove {self.name or self.id} ({', '.join(self.peer_urls)}) from etcd's members"

    def apply(self, host: Host) -> None:
        def gone(etcd: Etcd) -> None:
            host.remember(f"etcd-removed-{self.id}", b"")
            if any(f"{one.id:x}" == self.id for one in etcd.members()):
                etcd.remove_member(int(self.id, 16))

        self.access.ask(host, gone)

    def revert(self, host: Host) -> None:
        """etcd bans a removed id for good: old data under it never starts again."""
        self._refuse(host.remembered(f"etcd-removed-{self.id}") is not None)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:  # noqa: ARG002 - a step's signature
        self._refuse(complete or host.remembered(f"etcd-removed-{self.id}") is not None)

    def _refuse(self, removed: bool) -> None:
        if removed:
            raise Refused(
                f"etcd's member {self.name or self.id} was removed, and a removed one cannot return with its old data",
                "go on instead: drtool resume; or join it empty: drtool restore --node --join URL",
            )


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """One member compacted and defragmented, then its NOSPACE alarm cleared. Defragmenting blocks this member."""

    access: Access
    compact: bool

    def describe(self) -> str:
        first = "compact old revisions, then " if self.compact else ""
        return f"{first}defragment etcd at {self.access.endpoints[0]} (it stands still meanwhile)"

    def apply(self, host: Host) -> None:
        def free(etcd: Etcd) -> None:
            if self.compact:
                etcd.compact(etcd.status().revision, physical=True)
            etcd.defragment()

        self.access.ask(host, free)

    def revert(self, host: Host) -> None:
        """No live key was touched; old revisions do not come back."""


@dataclass(frozen=True, slots=True)
class DisarmNoSpace:
    access: Access

    def describe(self) -> str:
        return "clear the NOSPACE alarm"

    def apply(self, host: Host) -> None:
        def disarm(etcd: Etcd) -> None:
            for member, alarm in etcd.alarms():
                if alarm == "NOSPACE":
                    etcd.disarm(member, alarm)

        self.access.ask(host, disarm)

    def revert(self, host: Host) -> None:
        """etcd raises it again by itself where there is no space."""
