"""A host rooted in a directory, with services, containers and time that do as the test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from drtool.core.errors import DrtoolError
from drtool.host.disk import Disk
from drtool.host.machine import Container, Host
from drtool.host.root import Root

PLAN = "20261130T080000Z-test-0a1b2c"


@dataclass
class FakeServices:
    running: set[str] = field(default_factory=lambda: {"kubelet", "containerd"})
    dead: set[str] = field(default_factory=set)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def active(self, unit: str) -> bool:
        return unit in self.running

    def start(self, unit: str) -> None:
        self.calls.append(("start", unit))
        if unit in self.dead:
            raise DrtoolError(f"{unit} does not start", f"journalctl -u {unit}")
        self.running.add(unit)

    def stop(self, unit: str) -> None:
        self.calls.append(("stop", unit))
        self.running.discard(unit)

    def restart(self, unit: str) -> None:
        self.stop(unit)
        self.start(unit)


@dataclass
class FakeContainers:
    """Containers of static Pods: one runs while its manifest lies in `manifests`, unless it is `stuck`."""

    manifests: Path | None = None
    stuck: set[str] = field(default_factory=set)
    silent: bool = False
    stopped: list[str] = field(default_factory=list)

    def all(self) -> tuple[Container, ...]:
        if self.silent:
            raise DrtoolError("the container runtime does not answer")
        names = [path.stem for path in sorted(self.manifests.glob("*.yaml"))] if self.manifests else []
        return tuple(
            Container(f"id-{name}", name, name, True, 1e12)
            for name in sorted({*names, *self.stuck})
            if name not in self.stopped
        )

    def stop(self, container: str, grace: int) -> None:
        name = container.removeprefix("id-")
        if name not in self.stuck:
            self.stopped.append(name)


@dataclass
class FakeProcesses:
    ports: set[int] = field(default_factory=set)
    open_in: dict[Path, tuple[str, ...]] = field(default_factory=dict)

    def listening(self, port: int) -> bool:
        return port in self.ports

    def holders(self, directory: Path) -> tuple[str, ...]:
        return self.open_in.get(directory, ())


@dataclass
class FakeClock:
    time: float = 1_796_000_000.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def rooted(directory: Path, disk: Disk | None = None, plan: str = PLAN) -> Host:
    manifests = directory / "etc/kubernetes/manifests"
    return Host(
        root=Root(directory),
        plan=plan,
        services=FakeServices(),
        containers=FakeContainers(manifests),
        processes=FakeProcesses(),
        clock=FakeClock(),
        disk=disk or Disk(),
    )
