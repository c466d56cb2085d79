"""The host that a plan's steps act on: files under a root, units, containers, processes, time.

Links in a path's parents are resolved inside the root first; what results is then opened component by component without
following any, so that nothing swapped in meanwhile can lead a write elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from drtool.core.errors import DrtoolError, Refused
from drtool.core.plan import Ahead
from drtool.host.disk import Disk, directory, exists, named
from drtool.host.root import Root

STATE = "/var/lib/drtool"
SMALL = 4 << 20


class Services(Protocol):
    """Units of the service manager. `stop` and `restart` raise DrtoolError, with the unit, where it stays as it is."""

    def active(self, unit: str) -> bool: ...
    def start(self, unit: str) -> None: ...
    def stop(self, unit: str) -> None: ...
    def restart(self, unit: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a Pod, as the runtime knows it. `created` in seconds since the epoch."""

    id: str
    name: str
    pod: str
    running: bool
    created: float = 0.0


class Containers(Protocol):
    """The container runtime. Each method raises DrtoolError where it does not answer: silence is never "none"."""

    def all(self) -> tuple[Container, ...]: ...
    def stop(self, container: str, grace: int) -> None: ...


class Processes(Protocol):
    """What the kernel says of processes and sockets. Raises DrtoolError where it may not be asked."""

    def listening(self, port: int) -> bool: ...
    def holders(self, directory: Path) -> tuple[str, ...]: ...


class Clock(Protocol):
    def now(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


class WallClock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class TimedOut(DrtoolError):
    """Something did not come about in time; the message names what is stuck."""


@dataclass(frozen=True, slots=True)
class Host:
    """`plan` is the id of the plan being carried out: what is moved aside lies under that name."""

    root: Root
    plan: str
    services: Services
    containers: Containers
    processes: Processes
    clock: Clock = field(default_factory=WallClock)
    disk: Disk = field(default_factory=Disk)

    @property
    def aside(self) -> str:
        return f"{STATE}/plans/{self.plan}/aside"

    def locate(self, path: str) -> Path:
        """Where the node's `path` lies; its last component need not exist, and is not followed if it is a link."""
        pure = PurePosixPath(path)
        return self.root.locate(str(pure.parent)) / pure.name

    @contextmanager
    def _in(self, path: str) -> Iterator[tuple[int, str]]:
        place = self.locate(path)
        with named(path), directory(place.parent.absolute()) as parent:
            yield parent, place.name

    def exists(self, path: str) -> bool:
        try:
            with self._in(path) as (parent, name):
                return exists(parent, name)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self, path: str, limit: int = SMALL) -> bytes:
        """The whole file; raises OSError, and Refused for what is larger than `limit` or no regular file."""
        with self._in(self.followed(path)) as (parent, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Refused(f"{path} is no regular file")
        with os.fdopen(descriptor, "rb") as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise Refused(f"{path} is larger than {limit} bytes")
        return data

    def digest(self, path: str) -> str:
        return hashlib.sha256(self.read(path)).hexdigest()

    def followed(self, path: str) -> str:
        """The node's own path that `path` leads to, when its last component is a link."""
        if not self.locate(path).is_symlink():
            return path
        return "/" + str(self.root.locate(path).relative_to(self.root.directory))

    def replace(self, path: str, data: bytes, mode: int | None = None) -> None:
        """New contents in one instant; mode and owner of what was there stay, else `mode` (0600) and this user."""
        with self._in(self.followed(path)) as (parent, name):
            owner = (os.geteuid(), os.getegid())
            if exists(parent, name):
                info = os.stat(name, dir_fd=parent, follow_symlinks=False)
                owner, old = (info.st_uid, info.st_gid), stat.S_IMODE(info.st_mode)
                mode = old if mode is None else mode
            part = self._part(name)
            self.disk.create(parent, part, data, 0o600 if mode is None else mode, owner)
            self.disk.replace(parent, part, name)

    def link(self, path: str, target: str) -> None:
        """A symbolic link in the place of whatever link or file has the name, in one instant."""
        with self._in(path) as (parent, name):
            self.disk.remove_part(parent, self._part(name))
            if self.link_target(path) == target:
                return
            self.disk.link(parent, self._part(name), target)
            self.disk.replace(parent, self._part(name), name)

    def remove_link(self, path: str) -> None:
        """Of a link that a plan made itself."""
        with self._in(path) as (parent, name):
            self.disk.remove_part(parent, name)

    def own(self, path: str, uid: int, gid: int) -> None:
        """Who owns a file; only where this user may say so."""
        if os.geteuid() == 0:
            with self._in(path) as (parent, name):
                os.chown(name, uid, gid, dir_fd=parent, follow_symlinks=False)

    def link_target(self, path: str) -> str:
        """As written; "" where it is no link."""
        with self._in(path) as (parent, name):
            try:
                return os.readlink(name, dir_fd=parent)
            except OSError:
                return ""

    def sweep(self, path: str) -> None:
        """Remove what a killed `replace` of this plan left beside `path`."""
        try:
            with self._in(self.followed(path)) as (parent, name):
                self.disk.remove_part(parent, self._part(name))
        except (FileNotFoundError, NotADirectoryError):
            return

    def _part(self, name: str) -> str:
        """Begins with a dot, so that the kubelet does not take it for a manifest."""
        return f".{name}.{self.plan}.part"

    def move(self, path: str, to: str) -> None:
        with self._in(path) as (source, name), self._in(to) as (target, new):
            self.disk.move(source, name, target, new)

    def make_directories(self, path: str, mode: int = 0o700) -> None:
        for parent in [*reversed(PurePosixPath(path).parents), PurePosixPath(path)]:
            if str(parent) != "/" and not self.exists(str(parent)):
                with self._in(str(parent)) as (above, name):
                    self.disk.make_directory(above, name, mode)

    def remove_empty(self, path: str) -> None:
        try:
            with self._in(path) as (parent, name):
                self.disk.remove_empty(parent, name)
        except (FileNotFoundError, NotADirectoryError):
            return

    def mode(self, path: str) -> int:
        with self._in(path) as (parent, name):
            return stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)

    def change_mode(self, path: str, mode: int) -> None:
        with self._in(path) as (parent, name):
            self.disk.change_mode(parent, name, mode)

    def keep(self, path: str) -> None:
        """Copy a file into this plan's own directory, or note that there is none; a later call leaves what is there."""
        copy = self.aside + path
        if self.exists(copy) or self.remembered(_absent(path)) is not None:
            return
        if not self.exists(path):
            self.remember(_absent(path), b"")
            return
        self.make_directories(str(PurePosixPath(copy).parent))
        self.replace(copy, self.read(path), self.mode(self.followed(path)))

    def foresee_put_back(self, path: str, ahead: Ahead, complete: bool) -> None:
        """Raises Refused where `put_back` will not know any more what was there; `complete` where `keep` was done."""
        copy = self.aside + path
        if self.exists(copy):
            ahead.becomes(path, self.digest(copy))
        elif self.remembered(_absent(path)) is not None:
            ahead.becomes(path, "")
        elif complete:
            raise lost(copy)

    def put_back(self, path: str) -> None:
        """The contents and mode that `keep` found; a file that was not there then goes to this plan's directory."""
        copy = self.aside + path
        self.sweep(path)
        if self.exists(copy):
            if not self.exists(path) or self.read(copy) != self.read(path):
                self.replace(path, self.read(copy), self.mode(copy))
        elif self.remembered(_absent(path)) is not None and self.exists(path):
            self.remember("made" + path.replace("/", "_"), self.read(path))
            with self._in(path) as (parent, name):
                self.disk.remove_part(parent, name)

    def put_back_over_link(self, path: str) -> None:
        """The file that `keep` found where a link is now; the link goes where there was none."""
        copy = self.aside + path
        with self._in(path) as (parent, name):
            self.disk.remove_part(parent, self._part(name))
        if self.remembered(_absent(path)) is not None:
            if self.link_target(path):
                self.remove_link(path)
        elif self.exists(copy) and (self.link_target(path) or not self.exists(path)):
            with self._in(path) as (parent, name):
                owner = (os.geteuid(), os.getegid())
                self.disk.create(parent, self._part(name), self.read(copy), self.mode(copy), owner)
                self.disk.replace(parent, self._part(name), name)

    def remember(self, name: str, data: bytes) -> None:
        """Keep what is in no file (an object of the API, say) in this plan's own directory; the first one stays."""
        place = self.memory(name)
        if not self.exists(place):
            self.make_directories(str(PurePosixPath(place).parent))
            self.replace(place, data)

    def memory(self, name: str) -> str:
        """Where `remember` keeps it."""
        return f"{self.aside}/remembered/{name}"

    def remembered(self, name: str) -> bytes | None:
        place = self.memory(name)
        return self.read(place) if self.exists(place) else None

    def newest(self, name: str) -> str:
        """What became of the newest container of that name, for messages about what is stuck."""
        try:
            found = [one for one in self.containers.all() if one.name == name]
        except DrtoolError as silent:
            return silent.what
        if not found:
            return f"no container {name} was started"
        last = max(found, key=lambda one: one.created)
        return f"container {last.id[:13]} ({name}) {'runs' if last.running else 'has ended'}"

    def wait(self, until: Callable[[], str], seconds: float, what: str, hint: str = "") -> None:
        """Ask `until` each half second what is still missing; "" ends it, and TimedOut carries the last answer."""
        end = self.clock.now() + seconds
        while missing := until():
            if self.clock.now() >= end:
                raise TimedOut(f"{what}: after {seconds:.0f} s {missing}", hint)
            self.clock.sleep(0.5)


def lost(path: str) -> Refused:
    """For what a plan put aside and somebody took away since."""
    return Refused(f"{path} is gone", "put it back in that place, or leave the plan as it stands")


def _absent(path: str) -> str:
    return "absent" + path.replace("/", "_")
