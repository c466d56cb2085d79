"""Steps that stop and start static Pods, with proof.

"Stopped" is never inferred from an empty answer: the runtime must have said that no such container runs, the kernel
that nobody listens on the ports, that no process has a file of the data directory open, and that the db is not locked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from drtool.core.errors import DrtoolError
from drtool.core.plan import Ahead
from drtool.host.machine import Host
from manifests.steps.files import foresee_move, move_back, move_once

GRACE = {"etcd": 30}
SHORT_GRACE = 5  # what a hard end costs the others is nothing: they keep no state
PATIENCE = 120.0
STARTED = 20.0  # seconds in which a kubelet that is well has started a container
NOTICED = 4.0  # seconds in which a kubelet sees that a file is gone: it is told by the kernel


@dataclass(frozen=True, slots=True)
class Program:
    """What a control-plane program holds while it runs: TCP ports of the host, and a data directory."""

    name: str
    ports: tuple[int, ...] = ()
    data_dir: str = ""


def still_running(host: Host, program: Program) -> str:
    """What shows that the program is not stopped; "" once all of it is proved gone."""
    for container in host.containers.all():
        if container.running and container.name == program.name:
            return f"container {container.id[:13]} ({program.name}, Pod {container.pod}) still runs"
    for port in program.ports:
        if host.processes.listening(port):
            return f"something still listens on port {port}"
    if program.data_dir and host.exists(program.data_dir):
        for holder in host.processes.holders(host.root.locate(program.data_dir)):
            return f"{holder} has files open in {program.data_dir}"
    return ""


def stop_containers(host: Host, program: Program) -> None:
    for container in host.containers.all():
        if container.running and container.name == program.name:
            host.containers.stop(container.id, GRACE.get(program.name, SHORT_GRACE))


def prove_stopped(host: Host, program: Program) -> None:
    """The kubelet stops the Pod of a parked manifest itself, but gives an API server more than half a minute to end.

    So once it has had time to see that the manifest is gone, or where it does not run, the runtime is asked as well.
    """
    begun = host.clock.now()
    alone = not host.services.active("kubelet")

    def missing() -> str:
        if alone or host.clock.now() - begun >= NOTICED:
            stop_containers(host, program)
        return still_running(host, program)

    hint = f"crictl ps --name {program.name}; journalctl -u kubelet"
    host.wait(missing, PATIENCE, f"{program.name} does not stop", hint)


def let_start(host: Host, program: Program) -> None:
    """Give the kubelet time to start a manifest that came back; restart it where it does not.

    A kubelet that has not told the API server of the old Pod's end yet (while that is down it cannot) may wait for ever
    before it starts a static Pod of the same name. Its restart forgets that, and harms no running container.
    """
    if not host.services.active("kubelet"):
        return
    begun = host.clock.now() - 1
    while not _started(host, program, begun):
        if host.clock.now() - begun > STARTED:
            host.services.restart("kubelet")
            return
        host.clock.sleep(0.5)


def _started(host: Host, program: Program, since: float) -> bool:
    """A runtime that does not answer is no reason to give up: what waits for the program will say so."""
    try:
        return any(one.name == program.name and one.created >= since for one in host.containers.all())
    except DrtoolError:
        return False


@dataclass(frozen=True, slots=True)
class ParkStaticPod:
    """The manifest moved out of the kubelet's sight, and the proof that what it ran is down.

    A parked Pod stays down over a reboot, which a stopped kubelet does not promise.
    """

    program: Program
    path: str
    to: str

    def describe(self) -> str:
        return f"stop {self.program.name}: move {self.path} to {self.to}, and prove that it is down"

    def apply(self, host: Host) -> None:
        move_once(host, self.path, self.to)
        prove_stopped(host, self.program)

    def revert(self, host: Host) -> None:
        parked = host.exists(self.to)
        move_back(host, self.path, self.to)
        if parked:
            let_start(host, self.program)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:
        foresee_move(host, ahead, self.to, self.path, complete)

    def kept(self, _: str) -> tuple[str, ...]:
        return (self.to,)


@dataclass(frozen=True, slots=True)
class UnparkStaticPod:
    """The manifest back where the kubelet reads it; what waits for the program is a step of its own."""

    program: Program
    path: str
    to: str

    def describe(self) -> str:
        return f"start {self.program.name}: move {self.to} back to {self.path}"

    def apply(self, host: Host) -> None:
        move_once(host, self.to, self.path)
        host.remove_empty(str(PurePosixPath(self.to).parent))
        let_start(host, self.program)

    def revert(self, host: Host) -> None:
        move_once(host, self.path, self.to)
        prove_stopped(host, self.program)

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:  # noqa: ARG002 - a step's signature
        foresee_move(host, ahead, self.path, self.to, complete=True)


@dataclass(frozen=True, slots=True)
class StopControlPlane:
    """The kubelet and the named programs down, in this order, with proof."""

    programs: tuple[Program, ...]

    def describe(self) -> str:
        return f"stop the kubelet, then {_names(self.programs)}, and prove that they are down"

    def apply(self, host: Host) -> None:
        stop_control_plane(host, self.programs)

    def revert(self, host: Host) -> None:
        host.services.start("kubelet")


@dataclass(frozen=True, slots=True)
class StartControlPlane:
    """The kubelet, which starts every Pod whose manifest it finds."""

    programs: tuple[Program, ...]

    def describe(self) -> str:
        return f"start the kubelet, and with it {_names(self.programs)}"

    def apply(self, host: Host) -> None:
        host.services.start("kubelet")

    def revert(self, host: Host) -> None:
        stop_control_plane(host, self.programs)


def stop_control_plane(host: Host, programs: tuple[Program, ...]) -> None:
    host.services.stop("kubelet")
    for program in programs:
        prove_stopped(host, program)


def _names(programs: tuple[Program, ...]) -> str:
    return ", ".join(program.name for program in programs)


@dataclass(frozen=True, slots=True)
class RestartKubelet:
    """So that it reads its files again; running containers go on."""

    why: str

    def describe(self) -> str:
        return f"restart the kubelet: {self.why}"

    def apply(self, host: Host) -> None:
        host.services.restart("kubelet")

    def revert(self, host: Host) -> None:
        host.services.restart("kubelet")


@dataclass(frozen=True, slots=True)
class RestartContainers:
    """The kubelet starts a container anew once it has ended; the Pod stays."""

    names: tuple[str, ...]
    why: str

    def describe(self) -> str:
        return f"restart {', '.join(self.names)}: {self.why}"

    def apply(self, host: Host) -> None:
        for name in self.names:
            stop_containers(host, Program(name))

    def revert(self, host: Host) -> None:
        self.apply(host)
