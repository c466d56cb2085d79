"""What a survey gathers on its way through a db."""

from __future__ import annotations

from dataclasses import dataclass, field

from drtool.core.events import Listener
from snapshots.bolt import Bolt, Damaged, Page
from snapshots.totals import Totals, totals

MAX_FAULTS = 100


@dataclass(slots=True)
class Survey:
    """What the pass gathers. `stored` has every user key (see totals), `dead` the deleted ones.

    Where two processes shared a pass, `stored` has the keys of this one's share, and `both` are the totals.
    `crc` is etcdutl's hash, `newest` the last key of bucket `key`; `seen` has a 1 for every page in use.
    `faults` is None where the first fault ends the pass, else what has been found and stepped over.
    """

    bolt: Bolt
    listener: Listener
    seen: bytearray
    crc: int = 0
    hashed: int = 0
    pairs: int = 0
    newest: bytes = b""
    stored: dict[bytes, int] = field(default_factory=dict)
    dead: set[bytes] = field(default_factory=set)
    both: Totals | None = None
    in_key: bool = False
    previous: bytes | None = None
    branches: int = 0
    faults: list[Damaged] | None = None

    def totals(self) -> Totals:
        return self.both or totals(self.stored)

    @property
    def free(self) -> int:
        """Pages that hold nothing (the two metas count as used)."""
        return self.seen.count(0)

    def blame(self, fault: Damaged) -> None:
        """Ends the pass, or notes the fault and lets it go on; what is noted is bounded."""
        if self.faults is None:
            raise fault
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(fault)

    def claim(self, page: Page) -> None:
        self.claim_run(page.number, page.end // self.bolt.page_size)

    def claim_run(self, first: int, end: int) -> None:
        """Raises Damaged where one of the pages `first` to `end` is in use already."""
        twice = self.seen.find(1, first, end)
        if twice >= 0:
            raise self.bolt.damaged(twice, "referred to twice")
        self.seen[first:end] = b"\1" * (end - first)
