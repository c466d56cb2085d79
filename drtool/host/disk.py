"""The few calls that change a file system, through directory descriptors, each durable before it returns.

Everything drtool's plans write goes through a `Disk`; tests put one in its place that dies at the n-th call.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from drtool.core.errors import Refused

OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
CHUNK = 1 << 20


@contextmanager
def directory(path: Path) -> Iterator[int]:
    """A descriptor of `path`, opened one component at a time: a link anywhere in it is an error (ELOOP, ENOTDIR)."""
    descriptor = os.open("/", OPEN_DIRECTORY)
    try:
        for part in path.parts[1:]:
            deeper = os.open(part, OPEN_DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def named(path: str) -> Iterator[None]:
    """An OSError of the block says which file it is about: descriptors and bare names do not."""
    try:
        yield
    except OSError as failed:
        if not str(failed.filename or "").startswith("/"):
            failed.filename = path
            failed.filename2 = None
        raise


def exists(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


class Disk:
    """Each method takes the descriptor of the directory it works in and a plain name there."""

    def create(self, parent: int, name: str, data: bytes, mode: int, owner: tuple[int, int]) -> None:
        """A file of our own, written anew whatever a killed run left of it."""
        descriptor = os.open(name, CREATE, 0o600, dir_fd=parent)
        try:
            self.write(descriptor, data)
            os.fchmod(descriptor, mode)
            if os.geteuid() == 0:
                os.fchown(descriptor, *owner)
            self.sync(descriptor)
        finally:
            os.close(descriptor)

    def append(self, parent: int, name: str, data: bytes) -> None:
        """Add to the file's end and sync; made where it is not there."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
        try:
            self.write(descriptor, data)
            self.sync(descriptor)
        finally:
            os.close(descriptor)

    def write(self, descriptor: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view[:CHUNK]) :]

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def replace(self, parent: int, name: str, over: str) -> None:
        """`name` takes the place of `over` in the same directory, in one instant."""
        os.rename(name, over, src_dir_fd=parent, dst_dir_fd=parent)
        self.sync(parent)

    def move(self, source: int, name: str, target: int, new: str) -> None:
        """Rename into a name that nothing has. Refuses an existing target and another file system."""
        if exists(target, new):
            raise Refused(f"cannot move {name} aside: {new} is already there")
        try:
            os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
        except OSError as failed:
            if failed.errno not in (errno.EXDEV, errno.EBUSY):
                raise
            raise Refused(
                f"{name} cannot be moved: it is a mount point, or the target is on another file system"
            ) from failed
        self.sync(target)
        self.sync(source)

    def make_directory(self, parent: int, name: str, mode: int) -> None:
        with suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=parent)
            self.sync(parent)

    def remove_empty(self, parent: int, name: str) -> None:
        """A directory of our own, once nothing is in it; left alone otherwise."""
        if not exists(parent, name):
            return  # not asked to remove what is not there, a read-only file system does not refuse
        try:
            os.rmdir(name, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as failed:
            if failed.errno in (errno.ENOTEMPTY, errno.EEXIST):
                return
            raise
        self.sync(parent)

    def link(self, parent: int, name: str, target: str) -> None:
        os.symlink(target, name, dir_fd=parent)

    def remove_part(self, parent: int, name: str) -> None:
        """An unfinished file of our own; never anything else."""
        if not exists(parent, name):
            return  # as above
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
            self.sync(parent)

    def change_mode(self, parent: int, name: str, mode: int) -> None:
        """Never through a link: the descriptor is opened without following."""
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.fchmod(descriptor, mode)
            self.sync(descriptor)
        finally:
            os.close(descriptor)
