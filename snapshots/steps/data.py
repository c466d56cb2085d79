"""Steps on etcd's data: its directory, waiting for it, and what is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from drtool.core.errors import DrtoolError, Refused
from drtool.core.plan import Ahead
from drtool.host.machine import Host, lost

if TYPE_CHECKING:
    from snapshots.etcd import Etcd, EtcdAccess

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
    """A member with a leader and a linearizable read that comes back; `without_alarm`: that takes writes, too."""

    access: Access
    seconds: float = 240.0
    without_alarm: bool = False

    def describe(self) -> str:
        return f"wait until etcd at {', '.join(self.access.endpoints)} is healthy (at most {self.seconds:.0f} s)"

    def apply(self, host: Host) -> None:
        hint = "crictl ps -a --name etcd; the last lines of /var/log/pods/kube-system_etcd-*/*/*.log"
        host.wait(lambda: self._missing(host), self.seconds, "etcd is not healthy", hint)

    def _missing(self, host: Host) -> str:
        try:
            self.access.ask(host, lambda etcd: etcd.get(b"health"))
            alarms = self.access.ask(host, lambda etcd: etcd.alarms()) if self.without_alarm else ()
        except DrtoolError as error:
            return f"{error.what}; {host.newest('etcd')}"
        return f"the alarm {alarms[0][1]} came with the backup: --clear-alarms leaves it out" if alarms else ""

    def revert(self, host: Host) -> None:
        """Waiting left nothing."""


@dataclass(frozen=True, slots=True)
class SwapDataDir:
    """The member's directory moved aside, and one made before moved into its place: two renames.

    `prepared` holds the new `member`, `aside` takes the old one; both lie inside the data directory, which may be a
    mount point. Without a new one (`emptied`), etcd makes its own when it joins.
    """

    data_dir: str
    prepared: str
    aside: str
    emptied: bool = False

    def describe(self) -> str:
        what = "leave it empty" if self.emptied else f"put the new one in its place ({self.prepared})"
        return f"move {self.data_dir}/member aside to {self.aside}, and {what}"

    def apply(self, host: Host) -> None:
        member, new, old = self._places()
        host.make_directories(self.aside)
        if self.emptied:
            host.remember(self._memory, b"had a member" if host.exists(member) else b"")
            if host.remembered(self._memory) and host.exists(member) and not host.exists(old):
                host.move(member, old)
        elif host.exists(new):
            host.remember(self._memory, b"had a member" if host.exists(member) or host.exists(old) else b"")
            if host.exists(member):
                host.move(member, old)
            host.move(new, member)
        elif not host.exists(member):
            raise Refused(f"{new} is gone, and so is {member}", f"look for them below {self.data_dir}")
        elif host.remembered(self._memory) is None:
            raise Refused(f"{new} is gone, and was never put in the place of {member}", "make the plan again")

    def revert(self, host: Host) -> None:
        member, new, old = self._places()
        self._refuse_lost(host, complete=False)
        if self._replaced(host, new, old) and host.exists(member):
            host.make_directories(self.prepared)
            host.move(member, new)
        if host.exists(old):
            host.move(old, member)
        host.remove_empty(self.aside)

    def _replaced(self, host: Host, new: str, old: str) -> bool:
        """Whether the member that is there now is not the one from before."""
        if host.exists(old):
            return self.emptied or not host.exists(new)
        return host.remembered(self._memory) == b"" and not host.exists(new)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:  # noqa: ARG002 - a step's signature
        self._refuse_lost(host, complete)

    def _refuse_lost(self, host: Host, complete: bool) -> None:
        """The member from before was moved aside, and is not there any more: taking out the new one would leave none.

        Where `apply` or `revert` did not come to its end, the old one may be in its place still, or again.
        """
        member, new, old = self._places()
        memory = host.remembered(self._memory)
        if host.exists(old) or memory == b"":
            return
        swapped = memory is not None and not self.emptied and not host.exists(new)
        if complete or swapped or (memory is not None and not host.exists(member)):
            raise lost(old)

    def kept(self, _: str) -> tuple[str, ...]:
        return (self.aside, self.prepared)

    def _places(self) -> tuple[str, str, str]:
        return f"{self.data_dir}/member", f"{self.prepared}/member", f"{self.aside}/member"

    @property
    def _memory(self) -> str:
        """Whether there was a member; made before the first rename."""
        return f"emptied{self.data_dir.replace('/', '_')}"


@dataclass(frozen=True, slots=True)
class RebuildDataDir:
    """A cluster of one made from a stopped member's own directory: its db, and what its log has beyond it."""

    data_dir: str
    prepared: str
    name: str
    peer_urls: tuple[str, ...]
    token: str

    def describe(self) -> str:
        made = f"make a cluster of {self.name} alone from {self.data_dir}: {self.prepared}"
        return f"{made} (its log replayed, revisions bumped)"

    def apply(self, host: Host) -> None:
        from snapshots.membership import NewMember, new_cluster
        from snapshots.restore import Restoration, restore

        if host.exists(f"{self.prepared}/member"):
            return
        host.make_directories(str(PurePosixPath(self.prepared).parent))
        cluster = new_cluster((NewMember(self.name, self.peer_urls),), self.token)
        restore(host.root.locate(self.data_dir), host.locate(self.prepared), Restoration(cluster, self.name))

    def revert(self, host: Host) -> None:
        """What was made is kept beside; it is not in use by then."""

    def kept(self, _: str) -> tuple[str, ...]:
        return (self.prepared,)


MASTER_LEASES = "/registry/masterleases/"


@dataclass(frozen=True, slots=True)
class ClearMasterLeases:
    """The addresses of API servers as the backup knew them; each living one writes its own again within seconds."""

    access: Access
    prefix: str = MASTER_LEASES

    def describe(self) -> str:
        return f"delete the stale API server addresses below {self.prefix}"

    def apply(self, host: Host) -> None:
        self.access.ask(host, lambda etcd: etcd.delete(*prefix_range(self.prefix)))

    def revert(self, host: Host) -> None:
        """They were leases of seconds, in a data directory that is moved aside with them."""


@dataclass(frozen=True, slots=True)
class CompareCounts:
    """Keys per prefix on the running member against what the backup's record says; leased ones come and go."""

    access: Access
    counts: tuple[tuple[str, int], ...]

    def describe(self) -> str:
        total = sum(count for _, count in self.counts)
        return f"compare with the backup's record: {total} keys below {len(self.counts)} prefixes"

    def apply(self, host: Host) -> None:
        found = self.access.ask(host, self._counted)
        wrong = [
            f"{prefix} {now} instead of {was}"
            for (prefix, was), now in zip(self.counts, found, strict=True)
            if now != was
        ]
        if wrong:
            raise Refused(f"etcd does not hold what the backup's record says: {'; '.join(wrong[:5])}")

    def _counted(self, etcd: Etcd) -> list[int]:
        return [etcd.count(*prefix_range(prefix)) for prefix, _ in self.counts]

    def revert(self, host: Host) -> None:
        """Comparing left nothing."""


def prefix_range(prefix: str) -> tuple[bytes, bytes]:
    """Every key that begins so: etcd's range from it to the next text of its length."""
    start = prefix.encode()
    return start, start[:-1] + bytes([start[-1] + 1])
