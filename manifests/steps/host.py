"""Steps that prepare a host: kernel settings and modules, swap, and the files that keep them over a reboot."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import PurePosixPath

from drtool.core.errors import DrtoolError, Refused
from drtool.host.machine import Host

TIMEOUT = 120.0


@dataclass(frozen=True, slots=True)
class CreateFile:
    """A new file with this text. Refuses where another one of that name is there."""

    path: str
    text: str
    mode: int = 0o644

    def describe(self) -> str:
        return f"create {self.path}: {'; '.join(self.text.strip().splitlines())}"

    def apply(self, host: Host) -> None:
        host.sweep(self.path)
        if host.exists(self.path):
            if host.read(self.path) == self.text.encode():
                return
            raise Refused(f"{self.path} is there already, with other contents", "look at it, then make the plan again")
        host.make_directories(str(PurePosixPath(self.path).parent), 0o755)
        host.replace(self.path, self.text.encode(), self.mode)

    def revert(self, host: Host) -> None:
        host.sweep(self.path)
        if host.exists(self.path) and host.read(self.path) == self.text.encode():
            host.make_directories(host.aside)
            host.move(self.path, f"{host.aside}/{PurePosixPath(self.path).name}")


@dataclass(frozen=True, slots=True)
class SetKernelValue:
    """A sysctl now; `name` with dots. Written to /proc/sys in place, which is the only way there."""

    name: str
    before: str
    after: str

    def describe(self) -> str:
        return f"set {self.name} from {self.before} to {self.after}, now"

    def apply(self, host: Host) -> None:
        self._write(host, self.after)

    def revert(self, host: Host) -> None:
        self._write(host, self.before)

    def _write(self, host: Host, value: str) -> None:
        place = host.locate("/proc/sys/" + self.name.replace(".", "/"))
        try:
            with place.open("r+") as file:
                file.write(f"{value}\n")
        except OSError as failed:
            raise DrtoolError(f"{self.name} cannot be set to {value}: {failed.strerror}") from failed


@dataclass(frozen=True, slots=True)
class TurnSwapOff:
    """Swap on one device or file, now. Needs as much free memory as is swapped out."""

    device: str

    def describe(self) -> str:
        return f"turn swap off on {self.device}, now"

    def apply(self, host: Host) -> None:
        if self._on(host):
            _run("swapoff", self.device)

    def revert(self, host: Host) -> None:
        if not self._on(host):
            _run("swapon", self.device)

    def _on(self, host: Host) -> bool:
        lines = host.locate("/proc/swaps").read_text().splitlines()
        return any(line.split()[:1] == [self.device] for line in lines)


@dataclass(frozen=True, slots=True)
class LoadModule:
    """A kernel module, now. Taking it back leaves it loaded: something may use it by then, and it does no harm."""

    name: str

    def describe(self) -> str:
        return f"load the kernel module {self.name}, now"

    def apply(self, host: Host) -> None:  # noqa: ARG002 - a step's signature
        _run("modprobe", self.name)

    def revert(self, host: Host) -> None:
        """Nothing: see the class."""


def _run(program: str, argument: str) -> None:
    if shutil.which(program) is None:
        raise DrtoolError(f"{program} is not installed")
    try:
        done = subprocess.run([program, argument], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired as stuck:
        raise DrtoolError(f"{program} {argument} did not end within {TIMEOUT:g} s") from stuck
    if done.returncode:
        raise DrtoolError(f"{program} {argument}: {done.stderr.strip() or f'status {done.returncode}'}")
