"""A member's data directory: where its files lie, and whether a server holds it.

DIR/member/snap/db, DIR/member/snap/*.snap, DIR/member/wal/*.wal      directories 0700, files 0600
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def db_path(directory: Path) -> Path:
    return directory / "member" / "snap" / "db"


def wal_path(directory: Path) -> Path:
    return directory / "member" / "wal"


def in_use(db: Path) -> bool:
    """Whether a server has this db open: bbolt holds flock(2) on it, exclusive, or shared where it only reads."""
    descriptor = os.open(db, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
