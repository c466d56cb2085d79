"""One run at a time per cluster and store: objects CLUSTER-ID/lock/NNNNNNNN.json, the highest number is the lock.

Whoever creates the next number holds it; a conditional put lets one alone. A holder that has ended is passed over:
it said so, its time is up by the store's own clock, or it ran on this machine and its process is gone. After creating
its number a run lists again, and gives way to any higher one; so a number that was deleted meanwhile does no harm.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from drtool.core.errors import Locked
from snapshots.stores.store import KeyExists, KeyMissing, Store, Stored, StoreFailed, whole

NAME = re.compile(r"[0-9a-f]{16}/lock/(\d{8})\.json")
MARGIN = timedelta(minutes=5)


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """Who holds the lock.

    `boot` is the kernel's boot id and the PID namespace (a container has process ids of its own), `started` the
    process's start in clock ticks since that boot, `limit` how many seconds the run gives itself. `backups` are those
    that it writes or removes: what is left of them when it dies is the next holder's to clean up.
    """

    node: str
    boot: str
    pid: int
    started: int
    since: datetime
    limit: float
    backups: tuple[str, ...]
    nonce: str
    released: bool = False

    def __str__(self) -> str:
        return f"{self.node} (process {self.pid}, since {self.since:%Y-%m-%dT%H:%M:%SZ})"


@dataclass(frozen=True, slots=True)
class Lease:
    """The lock while it is held. `predecessors` are the backups that holders who died were at."""

    store: Store
    key: str
    owner: Owner
    predecessors: tuple[str, ...]

    def removing(self, backups: tuple[str, ...]) -> None:
        """Says in the lock what is about to be removed."""
        noted = msgspec.structs.replace(self.owner, backups=(*self.owner.backups, *backups))
        self.store.put(self.key, msgspec.json.encode(noted))

    def release(self) -> None:
        self.store.put(self.key, msgspec.json.encode(msgspec.structs.replace(self.owner, released=True)))


def owner(node: str, backups: tuple[str, ...], limit: timedelta) -> Owner:
    """This process, for at most `limit`: a run ends itself before that."""
    now, pid = datetime.now(UTC), os.getpid()
    return Owner(node, boot(), pid, start_of(pid) or 0, now, limit.total_seconds(), backups, secrets.token_hex(8))


def ended(one: Owner) -> bool:
    """Provably, without a clock: it said so, or it ran here and its process is gone (or another has its number)."""
    if one.released:
        return True
    return one.boot == boot() and start_of(one.pid) != one.started


@contextmanager
def held(store: Store, cluster: str, me: Owner) -> Iterator[Lease]:
    """Holds the lock while the block runs. Raises Locked, or what the store raises."""
    lease = _acquire(store, cluster, me)
    try:
        yield lease
    finally:
        with suppress(StoreFailed):
            lease.release()


def _acquire(store: Store, cluster: str, me: Owner) -> Lease:
    found = _numbers(store, cluster)
    top = max(found, default=0)
    predecessors: list[str] = []
    for number, stored in found.items():
        other = _owner(store, stored.key)
        if other is None or other.released:
            continue
        if number == top and not ended(other) and not _out_of_time(store, cluster, stored, other):
            raise Locked(f"another backup of this cluster runs: {other}", "wait for it, or let its time run out")
        predecessors += other.backups
    mine = top + 1
    # What the dead were at is this run's to clean up; should it die too before it has, the next one's.
    me = msgspec.structs.replace(me, backups=(*me.backups, *predecessors))
    try:
        store.put(_key(cluster, mine), msgspec.json.encode(me), if_absent=True)
    except KeyExists as taken:
        raise Locked("another backup of this cluster has just begun", "wait for it") from taken
    if max(_numbers(store, cluster), default=mine) != mine:
        store.delete(_key(cluster, mine))
        raise Locked("another backup of this cluster has just begun", "wait for it")
    for stored in found.values():
        store.delete(stored.key)
    for stored in store.list(f"{cluster}/clock/"):
        store.delete(stored.key)
    return Lease(store, _key(cluster, mine), me, tuple(predecessors))


def _out_of_time(store: Store, cluster: str, stored: Stored, one: Owner) -> bool:
    """By the store's clock alone: when it took the lock, and when it takes another object now."""
    probe = f"{cluster}/clock/{secrets.token_hex(4)}.json"
    store.put(probe, b"{}")
    now = next((found.modified for found in store.list(f"{cluster}/clock/") if found.key == probe), stored.modified)
    store.delete(probe)
    return now > stored.modified + timedelta(seconds=one.limit) + MARGIN


def _numbers(store: Store, cluster: str) -> dict[int, Stored]:
    found = ((NAME.fullmatch(stored.key), stored) for stored in store.list(f"{cluster}/lock/"))
    return {int(match[1]): stored for match, stored in found if match}


def _owner(store: Store, key: str) -> Owner | None:
    """None where it is gone. What cannot be read is not known to be dead."""
    try:
        return msgspec.json.decode(whole(store, key, 1 << 16), type=Owner)
    except KeyMissing:
        return None
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise Locked(f"{store.url}/{key} is no lock that drtool can read", "delete it if no backup runs") from wrong


def _key(cluster: str, number: int) -> str:
    return f"{cluster}/lock/{number:08d}.json"


def boot() -> str:
    """Something unique where the kernel does not say, so that nothing is proven by it."""
    try:
        return (
            Path("/proc/sys/kernel/random/boot_id").read_text().strip()
            + " "
            + str(Path("/proc/self/ns/pid").readlink())
        )
    except OSError:
        return secrets.token_hex(8)


def start_of(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat, clock ticks since boot (proc(5)); None where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])
