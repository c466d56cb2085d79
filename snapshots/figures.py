"""The figures of `etcdutl snapshot status`, and what else a db tells (etcdutl/v3/snapshot/v3_snapshot.go)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drtool.core.errors import Unsound
from drtool.core.events import Listener, silent
from snapshots import bolt as bbolt
from snapshots import cluster as clusters
from snapshots.bolt import Bolt, Damaged
from snapshots.cluster import Cluster
from snapshots.mvcc import Keyspace, decode_revision
from snapshots.survey import salvage
from snapshots.survey_beside import survey_beside
from snapshots.tally import Survey
from snapshots.totals import REVISION_SHIFT, SIZE_MASK, prefix_of
from snapshots.wire import Malformed


@dataclass(frozen=True, slots=True)
class Prefix:
    """`keys` alive below a prefix; `revisions` and `size` (bytes) count everything stored there, old revisions too."""

    prefix: bytes
    keys: int
    revisions: int
    size: int


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A key with many revisions that no compaction has removed yet."""

    key: bytes
    revisions: int
    size: int


@dataclass(frozen=True, slots=True)
class Figures:
    """`hash`, `revision`, `total_size` and `version` are etcdutl's; of its two total keys, `total_key` is that of
    3.6 and newer (user keys alive) and `pairs` that of 3.4 and 3.5 (pairs in all buckets).

    `compacted` is -1 where nothing was. `free` of `pages` hold nothing. `prefixes` has every prefix, largest first.
    """

    hash: int
    revision: int
    total_key: int
    pairs: int
    total_size: int
    version: str
    compacted: int
    pages: int
    page_size: int
    free: int
    prefixes: tuple[Prefix, ...]
    rewritten: tuple[Rewritten, ...]

    def keys_by_prefix(self) -> dict[str, int]:
        """Live keys per prefix, as a backup's record keeps them."""
        return {one.prefix.decode(errors="backslashreplace"): one.keys for one in self.prefixes if one.keys}


@dataclass(frozen=True, slots=True)
class Fault:
    page: int
    reason: str


@dataclass(frozen=True, slots=True)
class Structure:
    """What the structure check found; `metas` says which meta pages are valid (one torn meta loses nothing)."""

    faults: tuple[Fault, ...]
    metas: tuple[bool, bool]

    @property
    def sound(self) -> bool:
        return not self.faults


@dataclass(frozen=True, slots=True)
class Status:
    """A db as a whole. `figures` and `cluster` are None where damage leaves nothing to count.

    `trailer` is whether the trailing sha256 holds, None where the file has none (it was not saved by a snapshot).
    """

    structure: Structure
    figures: Figures | None
    cluster: Cluster | None
    trailer: bool | None = field(default=None)


def status(bolt: Bolt, listener: Listener = silent, trailer: bool = True) -> Status:
    """Everything in one pass; a damaged db gives what can still be read, and its faults. Never raises for damage."""
    found, faults, holds = _survey(bolt, bolt.trailer_holds if trailer else _untold, listener)
    cluster = None
    version, compacted = "", -1
    try:
        keyspace = Keyspace(bolt, bolt.buckets())
        compacted = keyspace.compacted()
        cluster = clusters.read(keyspace)
        version = cluster.storage_version
    except Damaged as fault:
        faults += (Fault(fault.page, fault.reason),)
    except Unsound as fault:
        faults += (Fault(0, fault.what),)
    first, second = bolt.metas
    return Status(
        structure=Structure(faults, (first is not None, second is not None)),
        figures=None if found is None else _figures(bolt, found, version, compacted),
        cluster=cluster,
        trailer=holds,
    )


def _untold() -> None:
    """The trailer of a caller that compares it itself."""


def read(path: Path, listener: Listener = silent) -> Status:
    with bbolt.opened(path) as bolt:
        return status(bolt, listener)


def _survey(
    bolt: Bolt, trailer: Callable[[], bool | None], listener: Listener
) -> tuple[Survey | None, tuple[Fault, ...], bool | None]:
    try:
        walk, holds = survey_beside(bolt, trailer, listener)
    except Damaged as fault:
        return *_salvage(bolt, fault, listener), trailer()
    return walk, (), holds


def _salvage(bolt: Bolt, first: Damaged, listener: Listener) -> tuple[Survey | None, tuple[Fault, ...]]:
    try:
        found = salvage(bolt, listener)
    except Damaged as fault:
        return None, (Fault(fault.page, fault.reason),)
    noted = [Fault(fault.page, fault.reason) for fault in found.faults or [first]]
    return found, tuple(dict.fromkeys(noted))


def _figures(bolt: Bolt, found: Survey, version: str, compacted: int) -> Figures:
    try:
        revision = decode_revision(found.newest).main if found.newest else 0
    except Malformed:
        revision = 0
    counted = found.totals()
    prefixes = _prefixes(counted.sums, found.dead)
    return Figures(
        hash=found.crc,
        revision=revision,
        total_key=sum(one.keys for one in prefixes),
        pairs=found.pairs,
        total_size=bolt.used,
        version=version,
        compacted=compacted,
        pages=bolt.meta.pages,
        page_size=bolt.page_size,
        free=found.free,
        prefixes=prefixes,
        rewritten=tuple(Rewritten(key, count >> REVISION_SHIFT, count & SIZE_MASK) for key, count in counted.most),
    )


def _prefixes(sums: Mapping[bytes, tuple[int, int]], dead: set[bytes]) -> tuple[Prefix, ...]:
    gone = Counter(map(prefix_of, dead))
    each = [
        Prefix(prefix, keys - gone[prefix], total >> REVISION_SHIFT, total & SIZE_MASK)
        for prefix, (keys, total) in sums.items()
    ]
    return tuple(sorted(each, key=lambda one: (-one.size, one.prefix)))
