"""A store in a directory: a disk, or a mount of one. Objects appear by rename, after fsync."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from drtool.host.writing import sync_directory
from snapshots.stores.store import (
    LEFTOVER,
    PART_SIZE,
    KeyExists,
    KeyMissing,
    Stored,
    StoreDenied,
    StoreFailed,
    StoreHolds,
    StoreMissing,
    StoreUnavailable,
    Upload,
    checked,
)

TRANSIENT = {errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EINTR, errno.EHOSTDOWN}
TRIES = 50
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@dataclass(frozen=True, slots=True)
class DirectoryStore:
    root: Path

    @property
    def url(self) -> str:
        return self.root.as_uri()

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> None:
        place = self._place(key)
        with self._errors(key):
            temporary = self._new(place)
            try:
                _write(temporary, data)
                _name_if_absent(temporary, place) if if_absent else temporary.rename(place)
            finally:
                with suppress(FileNotFoundError):
                    temporary.unlink()
            _sync(place.parent)

    def begin(self, key: str, part_size: int = PART_SIZE) -> Upload:
        place = self._place(key)
        with self._errors(key):
            name = self._new(place).name
        return Upload(key, name, part_size)

    def part(self, upload: Upload, number: int, data: bytes) -> str:
        with self._errors(upload.key), _opened(self._upload(upload), os.O_WRONLY) as descriptor:
            view, at = memoryview(data), (number - 1) * upload.part_size
            while view:
                written = os.pwrite(descriptor, view, at)
                view, at = view[written:], at + written
        return str(len(data))

    def complete(self, upload: Upload, tags: tuple[str, ...]) -> None:
        place, temporary = self._place(upload.key), self._upload(upload)
        expected = sum(int(tag) for tag in tags)
        with self._errors(upload.key):
            if not temporary.exists() and place.exists() and place.stat().st_size == expected:
                return  # asked again after it was done
            with _opened(temporary, os.O_WRONLY) as descriptor:
                if os.fstat(descriptor).st_size != expected:
                    raise StoreFailed(f"{self.url}/{upload.key}: its parts are {expected} bytes, the file is not")
                os.fsync(descriptor)
            temporary.rename(place)
            _sync(place.parent)

    def abort(self, upload: Upload) -> None:
        with self._errors(upload.key), suppress(FileNotFoundError):
            self._upload(upload).unlink()
            self._prune_empty(self._upload(upload).parent)

    def size(self, key: str) -> int:
        with self._errors(key):
            return self._place(key).stat().st_size

    def read(self, key: str, offset: int, length: int) -> bytes:
        with self._errors(key), _opened(self._place(key), os.O_RDONLY | os.O_NONBLOCK) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a FIFO would be waited for
                raise StoreFailed(f"{self.url}/{key} is no regular file: not what drtool writes there")
            found = bytearray()
            while len(found) < length:
                piece = os.pread(descriptor, length - len(found), offset + len(found))
                if not piece:
                    break
                found += piece
            return bytes(found)

    def list(self, prefix: str) -> Iterator[Stored]:
        with self._errors(prefix):
            self._there()
            found = list(self._walk(prefix))
        return iter(sorted(found, key=lambda one: one.key))

    def delete(self, key: str) -> None:
        place = self._place(key)
        with self._errors(key):
            try:
                place.unlink()
            except FileNotFoundError:
                return
            except PermissionError as held:
                if held.errno == errno.EPERM:
                    raise StoreHolds(
                        f"{self.url}/{key} cannot be deleted: {held.strerror}", "is it immutable?"
                    ) from held
                raise
            _sync(place.parent)
            self._prune_empty(place.parent)

    def give_up(self) -> None:
        """Nothing is ever tried twice here."""

    def sweep(self, prefix: str, before: datetime) -> int:
        swept = 0
        with self._errors(prefix):
            for directory, _, names in os.walk(self.root / prefix):
                for name in names:
                    place = Path(directory, name)
                    if name.endswith(LEFTOVER) and place.lstat().st_mtime < before.timestamp():
                        place.unlink()
                        self._prune_empty(place.parent)
                        swept += 1
        return swept

    def _place(self, key: str) -> Path:
        return self.root / checked(key)

    def _upload(self, upload: Upload) -> Path:
        return self._place(upload.key).parent / upload.id

    def _walk(self, prefix: str) -> Iterator[Stored]:
        for directory, _, names in os.walk(self.root / prefix, onerror=_raise_unless_gone):
            for name in names:
                if name.endswith(LEFTOVER):
                    continue
                place = Path(directory, name)
                with suppress(FileNotFoundError):  # deleted between the listing and the look
                    info = place.lstat()  # links are not followed, here as in `read`
                    key = place.relative_to(self.root).as_posix()
                    yield Stored(key, info.st_size, datetime.fromtimestamp(info.st_mtime, UTC))

    def _new(self, place: Path) -> Path:
        """An empty file beside `place`. Another process may take an empty directory away: then it is made again."""
        gone = OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(place))
        for _ in range(TRIES):
            try:
                self._make_parents(place)
                temporary = place.parent / _temporary(place.name)
                with _opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
                    return temporary
            except (FileNotFoundError, FileExistsError) as error:  # the latter where it went right after mkdir saw it
                gone = error
        raise gone

    def _make_parents(self, place: Path) -> None:
        """Each new directory is made durable in its parent. The store's own is never made: is the disk mounted?"""
        missing = []
        directory = place.parent
        while directory != self.root and not directory.is_dir():
            missing.append(directory)
            directory = directory.parent
        for directory in reversed(missing):
            directory.mkdir(mode=0o700, exist_ok=True)
            sync_directory(directory.parent)

    def _prune_empty(self, directory: Path) -> None:
        with suppress(OSError):
            while directory != self.root:
                directory.rmdir()
                directory = directory.parent

    def _there(self, error: OSError | None = None) -> None:
        if not self.root.is_dir():
            raise StoreMissing(f"{self.url} is no directory", "mount the disk, or make the directory") from error

    @contextmanager
    def _errors(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where, why = f"{self.url}/{key}".rstrip("/"), os.strerror(error.errno or 0)
            if isinstance(error, FileNotFoundError | NotADirectoryError):
                self._there(error)
                raise KeyMissing(f"{where}: not there") from error
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise StoreFailed(
                    f"{where}: {why}", "make room there, or prune; nothing half written is left"
                ) from error
            if isinstance(error, PermissionError) or error.errno == errno.EROFS:
                raise StoreDenied(f"{where}: {why}", "this user must be allowed to read and to write there") from error
            if error.errno in TRANSIENT:
                raise StoreUnavailable(f"{where}: {why}") from error
            raise StoreFailed(f"{where}: {why}") from error


def _temporary(name: str) -> str:
    return f".{name}.{secrets.token_hex(6)}{LEFTOVER}"


def _sync(directory: Path) -> None:
    """What was in it may be gone by now, and the directory with it."""
    with suppress(FileNotFoundError):
        sync_directory(directory)


def _write(place: Path, data: bytes) -> None:
    with _opened(place, os.O_WRONLY) as descriptor:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)


def _name_if_absent(temporary: Path, place: Path) -> None:
    """A hard link fails where the name is taken; some mounts have no links, there an empty file claims the name."""
    try:
        os.link(temporary, place, follow_symlinks=False)
    except FileExistsError as taken:
        raise KeyExists(f"{place} is there already") from taken
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        try:
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError as taken:
            raise KeyExists(f"{place} is there already") from taken
        temporary.rename(place)


@contextmanager
def _opened(place: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(place, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
