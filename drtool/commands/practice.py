"""The node of a rehearsal, known beyond doubt, and the host that plans act on there.

A root is a rehearsal's only where its marker, readable by this user alone, names that very directory and the random
token that also stands in the environment of the rehearsal's shell. Nothing else than that root is changed from there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest
from pathlib import Path

import msgspec

from drtool.core.errors import DrtoolError, UsageError
from drtool.host.machine import Container, Host
from drtool.host.processes import Proc, holds_lock
from drtool.host.root import Root

MARKER = "/drtool/scratch.json"
TOKEN, PLACE = "DRTOOL_REHEARSAL", "DRTOOL_REHEARSAL_ROOT"
STOPPED, RESTART, RUNNING = "stopped", "restart", "containers.json"


class Marker(msgspec.Struct, frozen=True):
    """`kubelet` is the directory of the stand-in for the kubelet, `ports` those of the scratch etcd."""

    token: str
    root: str
    kubelet: str
    ports: tuple[int, ...]


class Known(msgspec.Struct, frozen=True):
    """A container as the stand-in for the kubelet writes it down; `pid` of its only process."""

    id: str
    name: str
    pod: str
    running: bool
    created: float
    pid: int


def rehearsed(root: Root, environ: Mapping[str, str] = os.environ) -> Marker | None:
    """The marker of a rehearsal's root, in the rehearsal's own environment; None for any other directory."""
    token = environ.get(TOKEN, "")
    entry = root.read(MARKER, 4096)
    if root.live or not token or entry.data is None or entry.uid != os.geteuid() or entry.mode & 0o077:
        return None
    try:
        found = msgspec.json.decode(entry.data, type=Marker)
    except msgspec.MsgspecError:
        return None
    ours = compare_digest(found.token, token) and Path(found.root) == root.directory.resolve()
    return found if ours else None


def refuse_elsewhere(root: Root, environ: Mapping[str, str] = os.environ) -> None:
    """Plans are carried out on this machine, or in a rehearsal on its scratch root; nowhere else."""
    if environ.get(TOKEN):
        if rehearsed(root, environ) is None:
            raise UsageError(
                f"this shell is a rehearsal, and {root.directory} is not its scratch node",
                f"leave --root away, or leave the rehearsal; its node is {environ.get(PLACE, 'gone')}",
            )
    elif not root.live:
        raise UsageError(f"--apply acts on this machine, not on {root.directory}", "run it on the node itself")


def host(root: Root, plan: str, marker: Marker) -> Host:
    """The scratch node, whose kubelet is a stand-in that only knows etcd."""
    place = Path(marker.kubelet)
    return Host(root, plan, Units(place), Containers(place), Processes(marker.ports))


@dataclass(frozen=True, slots=True)
class Units:
    """Implements host.machine.Services: the kubelet, and no other unit."""

    place: Path

    def active(self, unit: str) -> bool:
        return unit == "kubelet" and not (self.place / STOPPED).exists()

    def start(self, unit: str) -> None:
        self._known(unit)
        (self.place / STOPPED).unlink(missing_ok=True)

    def stop(self, unit: str) -> None:
        self._known(unit)
        (self.place / STOPPED).touch()

    def restart(self, unit: str) -> None:
        self.start(unit)
        (self.place / RESTART).touch()

    def _known(self, unit: str) -> None:
        if unit != "kubelet":
            raise DrtoolError(f"a rehearsal has no unit {unit}", "it has a kubelet, which runs etcd")


@dataclass(frozen=True, slots=True)
class Containers:
    """Implements host.machine.Containers by what the stand-in for the kubelet wrote down."""

    place: Path

    def all(self) -> tuple[Container, ...]:
        return tuple(Container(one.id, one.name, one.pod, one.running, one.created) for one in self._known())

    def stop(self, container: str, grace: int) -> None:
        """SIGTERM, and SIGKILL after `grace` seconds. Whoever started the process sees it end."""
        for number, seconds in ((15, float(grace)), (9, 10.0)):
            pid = self._pid(container)
            if not pid:
                return
            os.kill(pid, number)
            until = time.monotonic() + seconds
            while self._pid(container) and time.monotonic() < until:
                time.sleep(0.1)
        if self._pid(container):
            raise DrtoolError(f"container {container[:13]} does not end")

    def _pid(self, container: str) -> int:
        return next((one.pid for one in self._known() if one.id == container and one.running), 0)

    def _known(self) -> tuple[Known, ...]:
        try:
            return msgspec.json.decode((self.place / RUNNING).read_bytes(), type=tuple[Known, ...])
        except (OSError, msgspec.MsgspecError) as gone:
            raise DrtoolError(f"the rehearsal's kubelet does not answer: {gone}", "the rehearsal has ended") from gone


@dataclass(frozen=True, slots=True)
class Processes:
    """Implements host.machine.Processes for the scratch etcd alone: what else runs on this machine is none of ours."""

    ports: tuple[int, ...]

    def listening(self, port: int) -> bool:
        return port in self.ports and Proc().listening(port)

    def holders(self, directory: Path) -> tuple[str, ...]:
        db = directory / "member/snap/db"
        return ("etcd",) if holds_lock(db) else ()
