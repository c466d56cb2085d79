"""Files under a root: a live `/`, a mounted disk, a copy, a bundle. No link leads out of it.

Every path is the node's own ("/etc/hosts"), whatever the root. Links, absolute ones too, are resolved inside the root,
one component at a time, so that data from elsewhere cannot make drtool read this machine.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from drtool.host.patience import Patience

MAX_LINKS = 40
PIECE = 64 << 10
GAVE_UP = "the read does not end: a dying disk or a lost network file system"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in the tree, as lstat and a bounded read give it.

    `data` is None for what is no regular file or could not be read; then `error` says why. A directory has an `error`
    where this process may not list it: that no name is known in it then proves nothing. `size` is the whole file's
    size, even where `data` was cut (`cut` is then true). `target` is where a symbolic link points, as written.
    """

    path: str
    kind: str
    mode: int = 0
    uid: int = 0
    gid: int = 0
    size: int = 0
    mtime: float = 0.0
    target: str = ""
    data: bytes | None = field(default=None, repr=False)
    cut: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Root:
    """A directory that stands for a node's `/`. With `patience`, a read that hangs is given up."""

    directory: Path
    patience: Patience | None = None

    @property
    def live(self) -> bool:
        return self.directory == Path("/")

    def locate(self, path: str) -> Path:
        """Where the node's `path` lies outside, all links resolved inside the root.

        Raises OSError (ENOENT, ELOOP, ENOTDIR) as open(2) would.
        """
        return Path(self._place(path))

    def _place(self, path: str) -> str:
        """As text, since a node has hundreds of paths and each many links to ask for."""
        parts = _parts(path)[::-1]
        top = str(self.directory).rstrip("/")
        here: list[str] = []
        links = 0
        while parts:
            part = parts.pop()
            if part == "..":
                del here[-1:]
                continue
            place = "/".join((top, *here, part))
            info = os.lstat(place)
            if not stat.S_ISLNK(info.st_mode):
                here.append(part)
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(place)  # noqa: PTH115 - Path.readlink would normalise it
            if target.startswith("/"):
                here.clear()
            parts += _parts(target)[::-1]
        return "/".join((top, *here)) or "/"

    def read(self, path: str, limit: int, tail: bool = False) -> Entry:
        """The entry at `path`, with at most `limit` bytes of it, the last ones where `tail`.

        Never raises for what is on the disk: an absent file has kind "absent", an unreadable one carries its error.
        """
        try:
            lexical = self._lexical(path)
            info = os.lstat(lexical)
            target = ""
            if stat.S_ISLNK(info.st_mode):
                target = os.readlink(lexical)  # noqa: PTH115 - as written
            place = self._place(path)
            info = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError) as gone:
            link = self._link_text(path)
            return Entry(path, "dangling" if link else "absent", target=link, error=os.strerror(gone.errno or 0))
        except (OSError, ValueError) as broken:
            return Entry(path, "unreadable", error=_reason(broken))
        kind = "link" if target else _kind(info.st_mode)
        known = Entry(
            path, kind, stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid, info.st_size, info.st_mtime, target
        )
        if stat.S_ISDIR(info.st_mode) and not os.access(place, os.R_OK | os.X_OK, effective_ids=True):
            return replace(known, error=os.strerror(errno.EACCES))
        if not stat.S_ISREG(info.st_mode) or limit == 0:
            return known
        if self.patience is None:
            return _with_data(known, place, limit, tail)
        return self.patience.spend(lambda: _with_data(known, place, limit, tail), replace(known, error=GAVE_UP))

    def _lexical(self, path: str) -> str:
        """Where the name itself lies: its parents' links resolved inside the root, its own not."""
        above, _, name = path.rstrip("/").rpartition("/")
        return f"{self._place(above).rstrip('/')}/{name}"

    def _link_text(self, path: str) -> str:
        try:
            return os.readlink(self._lexical(path))  # noqa: PTH115 - as written
        except (OSError, ValueError):
            return ""

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a directory, in byte order; none where it is absent or unreadable."""
        try:
            return tuple(sorted(os.listdir(self._place(path)), key=os.fsencode))  # noqa: PTH208 - names, not paths
        except (OSError, ValueError):
            return ()

    def glob(self, pattern: str) -> Iterator[str]:
        """The node's own paths that match; `*` and `?` within one component."""
        yield from self._expand("/", _parts(pattern))

    def _expand(self, base: str, parts: list[str]) -> Iterator[str]:
        if not parts:
            yield base.rstrip("/")
            return
        part, rest = parts[0], parts[1:]
        if not any(wild in part for wild in "*?["):
            path = f"{base}{part}"
            if rest or self._exists(path):
                yield from self._expand(path + "/", rest)
            return
        for name in self.names(base):
            if fnmatchcase(name, part):
                yield from self._expand(f"{base}{name}/", rest)

    def _exists(self, path: str) -> bool:
        try:
            return os.path.lexists(self._lexical(path))
        except (OSError, ValueError):
            return False


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "socket" if stat.S_ISSOCK(mode) else "special"


def _with_data(known: Entry, place: str, limit: int, tail: bool) -> Entry:
    """The kernel's own files say size 0, so what was read decides, not st_size."""
    try:
        # what is a regular file now may be a FIFO or a link by the time it is opened
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return replace(known, error="not a regular file")
            if tail and known.size > limit:
                file.seek(known.size - limit)
            data = _bounded(file, limit + 1)
    except OSError as broken:
        return replace(known, error=_reason(broken))
    cut = len(data) > limit or known.size > len(data)
    data = data[-limit:] if tail else data[:limit]
    return replace(known, data=data, cut=cut, size=max(known.size, len(data)))


def _bounded(file: io.FileIO, limit: int) -> bytes:
    """At most `limit` bytes in small pieces: the kernel answers ENOMEM to a large read of /proc/sys."""
    pieces: list[bytes] = []
    while limit > 0 and (piece := file.read(min(limit, PIECE))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return str(error)
