"""The host that plans act on in a rehearsal: a scratch node, where a stand-in for the kubelet runs etcd."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from drtool.commands.scratch_marker import Marker
from drtool.core.errors import DrtoolError
from drtool.host.machine import Container, Host
from drtool.host.processes import Proc, holds_lock
from drtool.host.root import Root

STOPPED, RESTART, RUNNING = "stopped", "restart", "containers.json"


class Known(msgspec.Struct, frozen=True):
    """A container as the stand-in for the kubelet writes it down; `pid` of its only process."""

    id: str
    name: str
    pod: str
    running: bool
    created: float
    pid: int


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
