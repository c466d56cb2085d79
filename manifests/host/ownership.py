"""Who a container runs as, and what a file's owner and mode let it do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.report import Evidence
from drtool.host.root import Entry

# A file and the bit that is needed of it: 4 to read, 2 to write.
Files = Iterator[tuple[Entry, int]]


@dataclass(frozen=True, slots=True)
class Identity:
    user: int
    groups: frozenset[int]
    evidence: Evidence

    def may(self, entry: Entry, bit: int) -> bool:
        """`bit` is 4 to read, 2 to write, as in the lowest digit of a mode."""
        if entry.uid == self.user:
            return bool(entry.mode >> 6 & bit)
        if entry.gid in self.groups:
            return bool(entry.mode >> 3 & bit)
        return bool(entry.mode & bit)
