"""What the kernel says of sockets, open files and locks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drtool.core.errors import DrtoolError

LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Proc:
    """/proc of the running machine; implements host.machine.Processes."""

    proc: Path = Path("/proc")

    def listening(self, port: int) -> bool:
        """Whether any address of this network namespace listens on the TCP port (proc_pid_net(5))."""
        return port in self._listeners()

    def _listeners(self) -> set[int]:
        ports = set()
        for name in ("tcp", "tcp6"):
            try:
                lines = (self.proc / "net" / name).read_text().splitlines()[1:]
            except FileNotFoundError:
                if name == "tcp":
                    raise DrtoolError(f"{self.proc}/net/tcp is absent: open ports cannot be seen") from None
                continue  # a kernel without IPv6
            rows = (line.split() for line in lines)
            ports |= {int(row[1].rpartition(":")[2], 16) for row in rows if len(row) > 3 and row[3] == LISTEN}
        return ports

    def holders(self, directory: Path) -> tuple[str, ...]:
        """Processes ("PID (NAME)") that hold a file below `directory` open or mapped, or a lock on one.

        Files are compared by device and inode: a container sees them under another path. Needs root, and says so.
        """
        inodes = {(info.st_dev, info.st_ino) for info in _files(directory)}
        if not inodes:
            return ()
        found = [f"{pid} ({self._name(pid)})" for pid in self._pids() if any(i in inodes for i in self._open(pid))]
        return tuple(found) or tuple(_locked(directory))

    def _pids(self) -> list[int]:
        return sorted(int(entry.name) for entry in self.proc.iterdir() if entry.name.isdecimal())

    def _name(self, pid: int) -> str:
        try:
            return (self.proc / str(pid) / "comm").read_text().strip()
        except OSError:
            return "?"

    def _open(self, pid: int) -> Iterator[tuple[int, int]]:
        if pid == os.getpid():
            return
        try:
            entries = list((self.proc / str(pid) / "fd").iterdir())
        except (FileNotFoundError, ProcessLookupError):
            return
        except PermissionError as refused:
            raise DrtoolError(f"open files of process {pid} cannot be seen", "run drtool as root") from refused
        for entry in entries:
            try:
                info = entry.stat()
            except OSError:
                continue
            yield info.st_dev, info.st_ino


def _files(directory: Path) -> Iterator[os.stat_result]:
    for base, _, names in os.walk(directory):
        for name in names:
            try:
                yield os.lstat(Path(base) / name)
            except FileNotFoundError:
                continue


def _locked(directory: Path) -> Iterator[str]:
    """etcd holds flock(2) on its db for as long as it runs."""
    for base, _, names in os.walk(directory):
        if "db" in names and holds_lock(Path(base) / "db"):
            yield f"someone (a lock on {base}/db)"


def holds_lock(path: Path) -> bool:
    """Whether any process has an exclusive flock on the file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
