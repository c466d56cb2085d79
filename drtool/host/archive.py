"""A bundle as a .tar.gz: written with fixed names, read as data from elsewhere.

Unpacking makes directories, regular files and symbolic links below one directory and nothing else: no device, no FIFO,
no hard link, no name that leads out. Links are made as written, and never followed while unpacking except inside.
"""

from __future__ import annotations

import errno
import io
import os
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from drtool.core.errors import CannotTell
from drtool.host.root import Root

MOST_MEMBERS = 50_000
MOST_BYTES = 16 << 30
CHUNK = 1 << 20
# members that get in each other's way: a second one of a name, one below a file, a link or a ring of links
CROOKED = {errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG}


def pack(files: Mapping[str, bytes], prefix: str, mtime: float, out: BinaryIO) -> None:
    """A gzip'd tar of `files` (absolute paths) below the directory `prefix`."""
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT, compresslevel=6) as archive:
        for path in sorted(files):
            member = tarfile.TarInfo(f"{prefix}{path}")
            member.size, member.mtime, member.mode = len(files[path]), int(mtime), 0o600
            archive.addfile(member, io.BytesIO(files[path]))


def unpack(archive: Path, into: Path) -> Path:
    """Unpacks below the empty directory `into`; the directory that stands for the node's `/`.

    Raises CannotTell for what is no tar archive, is cut short, or would fill the disk.
    """
    try:
        with tarfile.open(archive, mode="r|*") as members:
            _take(members, Root(into))
    except (tarfile.TarError, EOFError, zlib.error, ValueError, OSError) as broken:
        if isinstance(broken, OSError) and broken.filename:
            raise
        raise CannotTell(
            f"{archive} cannot be read as a bundle: {broken}",
            "a .tar.gz of `drtool collect`, or of a node's tree, is read",
        ) from broken
    return _top(into)


def _take(members: tarfile.TarFile, root: Root) -> None:
    budget = MOST_BYTES
    directories: dict[Path, tarfile.TarInfo] = {}
    for count, member in enumerate(members):
        if count >= MOST_MEMBERS or member.size > budget:
            raise CannotTell("the archive holds more than a node's evidence", "is it a bundle?")
        parts = [part for part in PurePosixPath("/" + member.name).parts[1:] if part != "."]
        if not parts or ".." in parts:
            continue
        try:
            place = _parent(root, parts) / parts[-1]
            if member.isdir():
                directories[place] = member
                place.mkdir(mode=0o700)
            elif member.issym():
                place.symlink_to(member.linkname)
            elif member.isfile():
                _write(members, member, place)
                budget -= member.size
        except OSError as odd:
            if odd.errno not in CROOKED:
                raise
    for place, member in directories.items():
        if place.is_dir() and not place.is_symlink():
            _attributes(place, member, 0o700)


def _attributes(place: Path | int, member: tarfile.TarInfo, least: int) -> None:
    """Mode and, for root, owner, as the node had them; `least` is what reading needs."""
    if os.geteuid() == 0:
        os.chown(place, member.uid, member.gid)
    os.chmod(place, (member.mode & 0o777) | least)  # noqa: PTH101 - a descriptor, too


def _parent(root: Root, parts: list[str]) -> Path:
    """The directory of a member, made where it is missing; links that earlier members made are resolved inside."""
    for depth in range(1, len(parts)):
        path = "/" + "/".join(parts[:depth])
        try:
            root.locate(path)
        except FileNotFoundError:
            above = root.locate(str(PurePosixPath(path).parent))
            if not os.path.lexists(above / parts[depth - 1]):
                (above / parts[depth - 1]).mkdir(mode=0o700)
    return root.locate("/" + "/".join(parts[:-1]))


def _write(members: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    source = members.extractfile(member)
    if source is None:
        return
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while chunk := source.read(CHUNK):
            file.write(chunk)
        _attributes(descriptor, member, 0o400)
    os.utime(place, (member.mtime, member.mtime), follow_symlinks=False)


def _top(into: Path) -> Path:
    """An archive of one directory, as `tar -C / cp-1` makes it, stands for that directory's contents."""
    names = list(into.iterdir())
    if len(names) == 1 and names[0].is_dir() and not names[0].is_symlink() and names[0].name not in {"etc", "drtool"}:
        return names[0]
    return into
