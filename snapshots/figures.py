"""The figures of `etcdutl snapshot status`, and what else a db tells (etcdutl/v3/snapshot/v3_snapshot.go)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from heapq import nlargest
from operator import itemgetter
from pathlib import Path

from drtool.core.errors import Unsound
from drtool.core.events import Listener, silent
from drtool.host.beside import beside
from snapshots import bolt as bbolt
from snapshots import cluster as clusters
from snapshots.bolt import Bolt, Damaged
from snapshots.cluster import Cluster
from snapshots.mvcc import Keyspace, decode_revision
from snapshots.survey import WORTH_HALVES, salvage, survey_in_halves
from snapshots.tally import REVISION_SHIFT, Survey
from snapshots.wire import Malformed

SIZE_MASK = (1 << REVISION_SHIFT) - 1
MOST = 10
REGISTRY = b"/registry/"
DEEPER = (b"services", b"ranges")
"""Segments below /registry that hold several resources, besides the API groups (which have a dot)."""


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
    # the hash has a core of its own where there are two, and the file is large enough to care
    with beside(bolt.trailer_holds if trailer else _untold, worth=bolt.used >= WORTH_HALVES) as holds:
        found = _all_but_trailer(bolt, listener)
        return replace(found, trailer=holds())


def _all_but_trailer(bolt: Bolt, listener: Listener) -> Status:
    found, faults = _survey(bolt, listener)
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
    )


def _untold() -> None:
    """The trailer of a caller that compares it itself."""


def read(path: Path, listener: Listener = silent) -> Status:
    with bbolt.opened(path) as bolt:
        return status(bolt, listener)


def _survey(bolt: Bolt, listener: Listener) -> tuple[Survey | None, tuple[Fault, ...]]:
    try:
        return survey_in_halves(bolt, listener), ()
    except Damaged as fault:
        first = fault
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
    most = nlargest(MOST, found.stored.items(), key=itemgetter(1))
    return Figures(
        hash=found.crc,
        revision=revision,
        total_key=len(found.stored) - len(found.dead),
        pairs=found.pairs,
        total_size=bolt.used,
        version=version,
        compacted=compacted,
        pages=bolt.meta.pages,
        page_size=bolt.page_size,
        free=found.free,
        prefixes=prefixes(found.stored, found.dead),
        rewritten=tuple(Rewritten(key, count >> REVISION_SHIFT, count & SIZE_MASK) for key, count in most),
    )


def prefixes(stored: Mapping[bytes, int], dead: set[bytes]) -> tuple[Prefix, ...]:
    """Sums keys by prefix; `stored` has revisions << 40 | bytes of each."""
    counts: dict[bytes, list[int]] = {}
    whole: dict[bytes, list[int]] = {}
    for key, count in stored.items():
        cut = key[: key.find(b"/", len(REGISTRY)) + 1]
        held = whole.get(cut)
        if held is None:
            prefix = prefix_of(key)
            held = counts.setdefault(prefix, [])
            if prefix == cut:  # what it is of one key, it is of all that begin with it
                whole[cut] = held
        held.append(count)
    gone = Counter(map(prefix_of, dead))
    sums = ((prefix, len(held), sum(held)) for prefix, held in counts.items())
    found = [
        Prefix(prefix, keys - gone[prefix], total >> REVISION_SHIFT, total & SIZE_MASK) for prefix, keys, total in sums
    ]
    return tuple(sorted(found, key=lambda one: (-one.size, one.prefix)))


def prefix_of(key: bytes) -> bytes:
    """The resource that a Kubernetes key belongs to: `/registry/pods/`, `/registry/GROUP/RESOURCE/`.

    Of any other key the first segment, of one without segments the key itself.
    """
    end = key.find(b"/", 1) + 1
    if not key.startswith(REGISTRY):
        return key[:end] or key
    second = key.find(b"/", end) + 1
    segment = key[end : second - 1]
    if second and (b"." in segment or segment in DEEPER):
        second = key.find(b"/", second) + 1
    return key[:second] or key
