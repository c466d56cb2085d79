"""Writing files so that a crash leaves the old one or the new one, never a part."""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

LEFTOVER = ".part"


@contextmanager
def beside(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A new file in `path`'s directory that takes its name once the block ends well; on any error it is gone.

    Never follows a link at the temporary name; the file and the directory are fsynced before this returns. What is no
    regular file (/dev/null, /dev/stdout, a directory) is not replaced: FileExistsError.
    """
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it is no regular file, and would be replaced by one", str(path))
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}{LEFTOVER}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            yield file
            file.flush()
            os.fsync(descriptor)
        temporary.rename(path)
    except BaseException as failed:
        if isinstance(failed, OSError) and failed.filename is None:
            failed.filename = str(path)  # a full disk does not say which
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    with beside(path, mode) as file:
        file.write(data)


def sweep(path: Path, age: float = 0.0) -> None:
    """Removes what killed runs left of writing `path`; `age` in seconds spares those that may still be writing."""
    before = time.time() - age
    with suppress(OSError):
        for left in path.parent.iterdir():
            ours = left.name.startswith(f".{path.name}.") and left.name.endswith(LEFTOVER)
            if ours and left.lstat().st_mtime <= before:
                left.unlink()


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
