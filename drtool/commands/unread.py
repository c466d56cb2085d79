"""What this user may not read of a node: it is unknown then, never healthy."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from drtool.core.errors import CannotTell
from drtool.host.root import Entry


def unread(entries: Iterable[Entry]) -> Entry | None:
    """The first that permissions keep from this user."""
    return next((entry for entry in entries if entry.error == os.strerror(errno.EACCES)), None)


def cannot_tell(root: Path, entry: Entry) -> CannotTell:
    return CannotTell(
        f"{root}: {entry.path}: {entry.error}: what needs it is unknown, not passed",
        "run drtool as root, or on a bundle that root collected",
    )
