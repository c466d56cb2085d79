"""One backup now: into the store, or sealed into the spool while the store is down."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drtool.commands import prune, spool
from drtool.commands.fetch import Shelf
from drtool.config import Config
from drtool.core.errors import Locked
from drtool.core.events import Listener, silent
from drtool.host import writing
from drtool.host.deadline import deadline
from drtool.host.later import Begin, later
from drtool.host.memory import one_arena
from drtool.host.root import Root
from manifests.node import read
from snapshots import catalog, inventory, lock, seal, signing
from snapshots.catalog import Record
from snapshots.choosing import choose
from snapshots.figures import Status
from snapshots.probe import probe
from snapshots.stores.directory import DirectoryStore
from snapshots.stores.store import KeyMissing, Store, StoreFailed
from snapshots.stream.tree import Kept, settle
from snapshots.take import Limits, Seals, Source, take

ORPHAN_AGE = timedelta(days=1)
LAST = "last-backup.json"
LOCK_WRITE_AGE = timedelta(minutes=6)
PROBED = "probed.json"


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to. `spooled`: the store was down for the reason in `failure`, the backup waits on this node.

    `sent` are backups of earlier runs that went from the spool to the store, `pruned` those that retention let go.
    """

    record: Record
    store: str
    spooled: bool = False
    failure: str = ""
    sent: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Stored where it belongs, read back, and enough to bring a node back."""
        return not self.spooled and self.record.verified is not None and not self.record.incomplete


def backup(
    config: Config,
    shelf: Shelf,
    root: Root,
    *,
    pinned: bool = False,
    listener: Listener = silent,
) -> Result:
    """Raises Locked, Refused, EtcdUnreachable, SnapshotBroken, OutOfTime, StoreFailed (where there is no spool), ..."""
    began = time.monotonic()
    one_arena()
    seals = _seals(config)
    with later(settle) as begin:  # before etcd is asked: gRPC's threads forbid a fork
        source = _source(config, root, pinned)
        name = catalog.new_id(datetime.now(UTC), source.status.revision)
        with _one_at_a_time(config) as (waiting, unusable), deadline(float(config.timeouts.total), "the backup"):
            run = _Run(config, shelf, source, seals, name, waiting, unusable, listener, begin)
            try:
                result = run.into_store()
            except StoreFailed as failed:
                # Another name: where only the store's last answer was lost, the first one may lie there, whole.
                run = replace(run, name=catalog.new_id(datetime.now(UTC), source.status.revision))
                result = run.into_spool(failed)
            if result.good:
                _remember(config, result.record)
    return replace(result, seconds=time.monotonic() - began)


def _remember(config: Config, record: Record) -> None:
    """The node's own word on its last good backup, for `drtool check`; what cannot be kept does not fail the backup."""
    if config.spool.directory:
        told = {
            "schemaVersion": 1,
            "id": record.id,
            "cluster": record.cluster_id,
            "revision": record.revision,
            "takenAt": record.taken_at.isoformat(),
        }
        place = Path(config.spool.directory).parent / LAST
        writing.sweep(place)  # no other run of this machine writes it now
        with suppress(OSError):
            writing.write(place, json.dumps(told).encode(), 0o644)


@dataclass(frozen=True, slots=True)
class _Run:
    config: Config
    shelf: Shelf
    source: Source
    seals: Seals
    name: str
    waiting: DirectoryStore | None
    unusable: str
    listener: Listener
    begin: Begin[Kept, Status]

    @property
    def cluster(self) -> str:
        return f"{self.source.status.cluster_id:016x}"

    def into_store(self) -> Result:
        store = self.shelf.store
        self._admit(store)
        me = lock.owner(self.source.node, (self.name,), timedelta(seconds=float(self.config.timeouts.total)))
        with lock.held(store, self.cluster, me) as lease:
            sent = spool.send(self.waiting, store, self.cluster, self.listener) if self.waiting else spool.Sent()
            self._forget_unfinished(store, lease.predecessors)
            record = self._take(store)
            pruned, warnings = prune.after_backup(self.shelf, self.cluster, self.config, record, lease)
        unusable = (f"{self.unusable}: no backup can wait there when the store is down",) if self.unusable else ()
        return Result(record, store.url, sent=sent.ids, pruned=pruned, warnings=(*unusable, *sent.left, *warnings))

    def _admit(self, store: Store) -> None:
        """A store is trusted with this cluster's backups once it has passed the probe; the object says that it has."""
        key = f"{self.cluster}/{PROBED}"
        try:
            store.size(key)
            return
        except KeyMissing:
            pass
        self._forget_probes(store)
        bad = [trial for trial in probe(store) if trial.problem]
        if bad:
            raise StoreFailed(
                f"{store.url} is refused, it did not pass the probe: {bad[0].name}: {bad[0].problem}",
                "`drtool config check` shows all of it",
            )
        store.put(key, b'{"schemaVersion": 1}\n')

    def _forget_probes(self, store: Store) -> None:
        """Of runs that died while they tried the store."""
        before = datetime.now(UTC) - ORPHAN_AGE
        for stored in store.list("probe/"):
            if stored.modified < before:
                store.delete(stored.key)
        store.sweep("probe/", before)

    def into_spool(self, failed: StoreFailed) -> Result:
        if self.waiting is None:
            if self.unusable:
                raise type(failed)(f"{failed.what}, and {self.unusable}", failed.hint) from failed
            raise failed
        unfinished = self._forget_unfinished(self.waiting, None)
        record = self._take(self.waiting)
        warnings = tuple(f"{path} had no record, so it was removed from the spool" for path in unfinished)
        try:
            dropped = spool.bound(self.waiting, self.cluster, self.config.spool.keep)
            warnings += tuple(f"{name} was dropped from the full spool" for name in dropped)
            warnings += spool.unbelieved(self.waiting, self.cluster)
        except StoreFailed as unread:  # the backup is there all the same
            warnings += (f"what else waits in the spool cannot be read: {unread}",)
        return Result(record, self.waiting.url, spooled=True, failure=str(failed), warnings=warnings)

    def _take(self, store: Store) -> Record:
        limits = Limits(float(self.config.timeouts.stall), float(self.config.timeouts.total))
        return take(self.source, self.seals, store, self.name, self.begin, limits, self.listener)

    def _forget_unfinished(self, store: Store, predecessors: tuple[str, ...] | None) -> tuple[str, ...]:
        """What runs that died left: at once where the lock named them (or all, in the spool), the rest after a day.

        The paths of what went.
        """
        before = datetime.now(UTC) - ORPHAN_AGE
        forgotten = []
        for orphan in inventory.orphans(store, self.cluster):
            name = orphan.path.rpartition("/")[2]
            if predecessors is None or name in predecessors or orphan.newest < before:
                inventory.forget(store, orphan)
                forgotten.append(orphan.path)
        now = datetime.now(UTC) + timedelta(minutes=1)
        for name in predecessors or ():
            store.sweep(f"{self.cluster}/{name}/", now)
        store.sweep(f"{self.cluster}/lock/", now - LOCK_WRITE_AGE)  # another run may be about to ask for the lock
        store.sweep(f"{self.cluster}/", now if predecessors is None else before)
        return tuple(forgotten)


def _source(config: Config, root: Root, pinned: bool) -> Source:
    from drtool.commands import source

    node = read(root)
    access, status = choose(source.etcd_access(config, node, root), pinned)
    return Source(access, status, node.name, source.version(node), source.node_bundle(config, node, root))


def _seals(config: Config) -> Seals:
    """Checked before anything is asked of etcd or the store."""
    for text in config.recipients:
        seal.recipient(text)
    key: Any = signing.private_key(Path(config.signing.key)) if config.signing.key else None
    return Seals(config.recipients, key)


@contextmanager
def _one_at_a_time(config: Config) -> Iterator[tuple[DirectoryStore | None, str]]:
    """The spool, locked against other runs on this machine; None where none is configured, or for the reason beside."""
    if not config.spool.directory:
        yield None, ""
        return
    directory = Path(config.spool.directory)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as wrong:
        yield None, f"the spool {directory} cannot be used ({wrong.strerror})"
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise Locked("another backup runs on this machine", "wait for it") from taken
        yield DirectoryStore(directory), ""
    finally:
        os.close(descriptor)
