"""What `etcdctl endpoint hashkv` would answer, from a file."""

from __future__ import annotations

from pathlib import Path

from drtool.core.events import Listener, silent
from snapshots import datadir, mvcc
from snapshots import hashkv as hashes
from snapshots.hashkv import HashKV


def hashkv(path: Path, revision: int = 0, listener: Listener = silent) -> HashKV:
    """`revision` 0 is the newest. The file is read only, and stays as it is."""
    with mvcc.opened(datadir.db_path(path) if path.is_dir() else path) as keyspace:
        return hashes.hashkv(keyspace, revision, listener)
