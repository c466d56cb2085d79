"""Steps on etcd: waiting for a member, and what its member list says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from drtool.core.errors import DrtoolError, Refused
from drtool.host.machine import Host

if TYPE_CHECKING:
    from snapshots.etcd import Etcd, EtcdAccess, Member

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Access:
    """How a plan reaches etcd: client URLs in the order to try, and the node's own paths of PEM files."""

    endpoints: tuple[str, ...]
    ca: str = ""
    cert: str = ""
    key: str = ""

    def on(self, host: Host, endpoint: str) -> EtcdAccess:
        from snapshots.etcd import EtcdAccess

        paths = [host.locate(host.followed(path)) if path else None for path in (self.ca, self.cert, self.key)]
        return EtcdAccess((endpoint,), *paths)

    def ask(self, host: Host, question: Callable[[Etcd], Answer]) -> Answer:
        """The first endpoint that answers; the last failure where none does."""
        from snapshots.etcd import Etcd, EtcdUnreachable

        failure: DrtoolError = DrtoolError("no etcd endpoint is known")
        for endpoint in self.endpoints:
            try:
                with Etcd(self.on(host, endpoint), timeout=5.0) as etcd:
                    return question(etcd)
            except EtcdUnreachable as unreachable:
                failure = unreachable
        raise failure


@dataclass(frozen=True, slots=True)
class WaitForEtcd:
    """A member with a leader, no alarm, and a linearizable read that comes back."""

    access: Access
    seconds: float = 240.0

    def describe(self) -> str:
        return f"wait until etcd at {', '.join(self.access.endpoints)} is healthy (at most {self.seconds:.0f} s)"

    def apply(self, host: Host) -> None:
        hint = "crictl ps -a --name etcd; the last lines of /var/log/pods/kube-system_etcd-*/*/*.log"
        host.wait(lambda: self._missing(host), self.seconds, "etcd is not healthy", hint)

    def _missing(self, host: Host) -> str:
        try:
            self.access.ask(host, lambda etcd: etcd.get(b"health"))
            alarms = self.access.ask(host, lambda etcd: etcd.alarms())
        except DrtoolError as error:
            return error.what
        return f"alarm {alarms[0][1]} of member {alarms[0][0]:x} is raised" if alarms else ""

    def revert(self, host: Host) -> None:
        """Waiting left nothing."""


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
