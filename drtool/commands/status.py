"""What a snapshot, a raw db or a member's data directory tells of itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drtool.core.events import Listener, silent
from snapshots import datadir, figures
from snapshots.figures import Status


@dataclass(frozen=True, slots=True)
class Report:
    """`path` is the db that was read; `live` is whether a server had it open, so that the figures are of no moment."""

    path: Path
    status: Status
    live: bool

    @property
    def good(self) -> bool:
        """Sound structure, and the trailing hash holds where there is one."""
        return self.status.structure.sound and self.status.trailer is not False


def status(path: Path, listener: Listener = silent) -> Report:
    """Raises NotFound where there is no file, Unsound where it cannot even be opened as a bbolt file."""
    db = datadir.db_path(path) if path.is_dir() else path
    found = figures.read(db, listener)
    return Report(db, found, datadir.in_use(db))
