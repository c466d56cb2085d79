"""One backup into one store: stream, check, seal, upload, read back, and the record last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from drtool.core.errors import DrtoolError, Unsound
from drtool.core.events import Listener, Progress, silent
from drtool.host.later import Begin
from snapshots import bundle, catalog, figures, inventory, seal
from snapshots.bundle import Bundle
from snapshots.catalog import RECORD, SIGNATURE, Part, Record, Verified
from snapshots.etcd import Etcd, EtcdAccess, SnapshotBroken, Status
from snapshots.stores.store import Store, StoreFailed
from snapshots.stream.check import StreamCheck
from snapshots.stream.tree import Kept
from snapshots.transfer import Sending, gathered, plain_pieces

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class StoreDamages(StoreFailed):
    """What was read back is not what was written: the store, or something before it, changes bytes."""


@dataclass(frozen=True, slots=True)
class Source:
    """What is backed up: a member (with its status just before) and the node's files."""

    access: EtcdAccess
    status: Status
    node: str
    kubernetes: str
    bundle: Bundle | None


@dataclass(frozen=True, slots=True)
class Seals:
    recipients: tuple[str, ...] = ()
    signing_key: Ed25519PrivateKey | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: without a snapshot message, and for the stream as a whole."""

    stall: float = 60.0
    total: float | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    store: Store
    path: str
    recipients: list[Any]
    keys: list[Any]
    listener: Listener

    @property
    def suffix(self) -> str:
        return "zst.age" if self.recipients else "zst"


def take(
    source: Source,
    seals: Seals,
    store: Store,
    backup_id: str,
    begin: Begin[Kept, figures.Status],
    limits: Limits = Limits(),
    listener: Listener = silent,
) -> Record:
    """The record as it was written; `begin` has the snapshot's pages settled while the backup is read back.

    On any error nothing of the backup is left in the store, as far as it answers.

    Raises SnapshotBroken, EtcdUnreachable, EtcdRefused, Unsound (the db itself), StoreFailed, StoreDamages.
    """
    began = datetime.now(UTC)
    path = f"{source.status.cluster_id:016x}/{backup_id}"
    own, own_public = seal.throwaway() if seals.recipients else (None, "")
    recipients = [seal.recipient(text) for text in seals.recipients]
    if own is not None:
        recipients.append(own.to_public())
    run = _Run(store, path, recipients, [own] if own is not None else [], listener)
    try:
        db, checked = _stream(source, run, limits, begin)
        node = _store_bundle(source.bundle, run)
        verified = _read_back([part for part in (db, node) if part is not None], run)
        record = Record(
            id=backup_id,
            cluster_id=f"{source.status.cluster_id:016x}",
            member_id=f"{source.status.member_id:016x}",
            node=source.node,
            taken_at=began,
            finished_at=began,
            endpoint=source.access.endpoints[0],
            etcd=source.status.version,
            kubernetes=source.kubernetes,
            db=db,
            bundle=node,
            incomplete=source.bundle.missing if source.bundle else ("the node's files",),
            sealed_for=seals.recipients,
            read_back_key=own_public,
            drtool=version("drtool"),
            verified=verified,
            **figures_of(checked(), "the snapshot"),
        )
        return _commit(record, seals, store)
    except BaseException:
        _clean(store, path)
        raise


def _stream(
    source: Source, run: _Run, limits: Limits, begin: Begin[Kept, figures.Status]
) -> tuple[Part, Callable[[], figures.Status]]:
    name = f"db.{run.suffix}"
    check = StreamCheck("the snapshot")
    size, shown = source.status.db_size, 0.0
    with (
        Etcd(source.access) as etcd,
        Sending(run.store, f"{run.path}/{name}") as sending,
        seal.Sealer(run.recipients, sending.write, hashed_elsewhere=True) as sealer,
        _ending(run.store),
    ):
        for piece in gathered(etcd.snapshot(limits.stall, limits.total)):
            check.feed(piece)
            sealer.write(piece)
            if (now := time.monotonic()) - shown > 0.1:
                shown = now
                run.listener(Progress("stream", check.size, size))
        whole(check)
        sizes = sealer.finish(check.whole_sha256)
        checked = check.finishing(begin)
        sending.finish()
    return _part(name, sizes), checked


def _store_bundle(held: Bundle | None, run: _Run) -> Part | None:
    if held is None:
        return None
    name = f"node.{run.suffix}"
    with (
        Sending(run.store, f"{run.path}/{name}") as sending,
        seal.Sealer(run.recipients, sending.write) as sealer,
        _ending(run.store),
    ):
        sealer.write(bundle.encode(held))
        sizes = sealer.finish()
        sending.finish()
    return _part(name, sizes)


def _read_back(parts: Iterable[Part], run: _Run) -> Verified | None:
    """None where the store does not let it be read now; StoreDamages where it gives other bytes."""
    try:
        for part in parts:
            with _ending(run.store, but=StoreFailed):
                for _ in plain_pieces(run.store, run.path, part, run.keys, run.listener):
                    pass
    except Unsound as differs:
        raise StoreDamages(
            f"read back from the store, the backup is not what was sent: {differs.what}", ""
        ) from differs
    except StoreFailed:
        return None
    return Verified(datetime.now(UTC), opened=True)


def _commit(record: Record, seals: Seals, store: Store) -> Record:
    """Signature, then the record: from that moment on the backup exists."""
    from msgspec.structs import replace

    finished = replace(record, finished_at=datetime.now(UTC))
    if seals.signing_key is not None:
        from snapshots.signing import fingerprint

        finished = replace(finished, signer=fingerprint(seals.signing_key.public_key()))
        store.put(f"{record.path}/{SIGNATURE}", seals.signing_key.sign(catalog.encode(finished)))
    store.put(f"{record.path}/{RECORD}", catalog.encode(finished), if_absent=True)
    return finished


@contextmanager
def _ending(store: Store, but: type[BaseException] | tuple[()] = ()) -> Iterator[None]:
    """On an error (or Ctrl-C) threads that still ask the store again and again must not hold the run up."""
    try:
        yield
    except but:
        raise
    except BaseException:
        store.give_up()
        raise


def _clean(store: Store, path: str) -> None:
    with suppress(DrtoolError):
        inventory.remove(store, [stored.key for stored in store.list(f"{path}/")])


def _part(name: str, sizes: seal.Sizes) -> Part:
    return Part(name, sizes.plain_size, sizes.plain_sha256, sizes.sealed_size, sizes.sealed_sha256)


def whole(check: StreamCheck) -> None:
    """Raises SnapshotBroken unless the stream came to its end: sectors, and then the sha256 of them."""
    if check.trailer is None:
        raise SnapshotBroken(
            f"the snapshot ended after {check.size} bytes, without its hash", "etcd closed the stream early: run again"
        )
    if not check.trailer:
        raise SnapshotBroken(
            "the snapshot's bytes do not match the sha256 that etcd sent with them",
            "they were damaged on the way: run again; if it repeats, suspect this machine's memory or network",
        )


def figures_of(found: figures.Status, name: str) -> dict[str, Any]:
    """What a record keeps of a checked db. Raises Unsound where the db is broken."""
    for fault in found.structure.faults:
        raise Unsound(
            f"{name}: page {fault.page}: {fault.reason}",
            "etcd's own db is damaged: check the other members, and restore from an older backup",
        )
    if found.figures is None or found.cluster is None:
        raise Unsound(f"{name} holds no etcd data")
    return {
        "revision": found.figures.revision,
        "compact_revision": found.figures.compacted,
        "raft_index": found.cluster.consistent_index,
        "raft_term": found.cluster.term,
        "keys": found.figures.total_key,
        "keys_by_prefix": found.figures.keys_by_prefix(),
    }
