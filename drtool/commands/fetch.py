"""Finds a stored backup and opens it: what verify, restore, drill and the object commands begin with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from drtool import config as configuration
from drtool.config import Config
from drtool.core.errors import CannotOpen, NotFound, UsageError
from drtool.core.events import TELL, Listener, silent
from drtool.host.passphrase import passphrase
from drtool.host.reading import small
from snapshots import bundle, catalog, inventory, seal, signing
from snapshots.bundle import Bundle
from snapshots.catalog import Backup, Part
from snapshots.stores import opening
from snapshots.stores.store import Store
from snapshots.transfer import plain_pieces


@dataclass(frozen=True, slots=True)
class Shelf:
    """A store with the keys to believe and to open what it holds."""

    store: Store
    trusted: tuple[Any, ...] = ()
    identities: tuple[Any, ...] = ()

    def inventory(self, cluster: str = "") -> inventory.Inventory:
        return inventory.read(self.store, self.trusted, cluster)

    def choose(self, wanted: str = "latest", cluster: str = "") -> Backup:
        """`latest`, an id or a part of one. A record that cannot be believed is named as such, not as absent.

        Where `latest` is not the newest one, `events.TELL` gets a line that says which and why.

        Raises NotFound, UsageError, CannotOpen, Unsound.
        """
        found = self.inventory(cluster)
        try:
            chosen = catalog.choose(found.backups, wanted, cluster)
        except NotFound:
            for path, wrong in reversed(found.broken):
                if wanted in path or (wanted == "latest" and not found.backups):
                    raise wrong from None
            raise
        if wanted == "latest" and (newer := passed_over(found, chosen)):
            (name, why), more = newer[0], f", and {len(newer) - 1} more" if newer[1:] else ""
            TELL.get()(f"latest is {chosen.id}, not the newer {name}: {why}{more}")
        return chosen


def passed_over(found: inventory.Inventory, chosen: Backup) -> list[tuple[str, str]]:
    """The backups of the same cluster whose names are of a later time, newest first, and why each is not the latest."""
    ours = f"{chosen.record.cluster_id}/"
    why = {path.removeprefix(ours): wrong.what for path, wrong in found.broken if path.startswith(ours)}
    why |= {one.id: reason for one in found.backups if one.record.path.startswith(ours) and (reason := _unfit(one))}
    return sorted(((name, reason) for name, reason in why.items() if name > chosen.id), reverse=True)


def _unfit(one: Backup) -> str:
    """Why a backup is not for `latest`; empty where it is."""
    if one.good:
        return "it is dated later than the store got it" if one.misdated else ""
    return (
        f"{one.verdict.kind} found it bad at {one.verdict.at:%Y-%m-%d %H:%M}" if one.verdict else "it is not verified"
    )


def shelf(config: Config, credentials: configuration.Credentials | None = None) -> Shelf:
    """The configured store; a signing key that is configured is trusted too."""
    paths = [*config.signing.trusted, *((config.signing.key,) if config.signing.key else ())]
    trusted = tuple(signing.public_key(Path(path)) for path in paths)
    found = [key for path in config.identities for key in seal.identities(_text(path), path)]
    return Shelf(opening.opened(config, credentials or configuration.credentials()), trusted, tuple(found))


def named(config: Config, source: str) -> tuple[Shelf, Backup]:
    """The backup that `source` names, which is no file. Raises as `Shelf.choose` does."""
    if not config.store.url:
        raise UsageError(
            f"{source}: no such file, and no store is configured that could have a backup of that name",
            "name a file, or give --store file:///path or s3://bucket/prefix",
        )
    held = shelf(config)
    return held, held.choose(source)


def db_pieces(held: Shelf, backup: Backup, listener: Listener = silent) -> Iterator[bytes]:
    """The snapshot as etcdctl would have saved it (its sha256 trailer included), compared with the record on the way.

    The comparison ends with the stream: whoever writes it somewhere must not use it before the iterator has ended.
    Raises CannotOpen where no identity fits, Unsound where it is damaged, and what the store raises.
    """
    return _open(held, backup, backup.record.db, listener)


def node_bundle(held: Shelf, backup: Backup) -> Bundle | None:
    """None where the backup has none. Raises as `db_pieces` does."""
    part = backup.record.bundle
    if part is None:
        return None
    data = b"".join(_open(held, backup, part, silent))
    return bundle.decode(data, f"{backup.record.path}/{part.name}")


def can_open(held: Shelf, backup: Backup) -> bool:
    """Whether there is any key to try; a backup without recipients needs none."""
    return not backup.record.sealed_for or bool(held.identities)


def _open(held: Shelf, backup: Backup, part: Part, listener: Listener) -> Iterator[bytes]:
    if not can_open(held, backup):
        sealed_for = ", ".join(backup.record.sealed_for)
        raise CannotOpen(
            f"{backup.id} is sealed for {sealed_for}, and no identity is given",
            "name the key file with --identity FILE",
        )
    keys = list(held.identities) if backup.record.sealed_for else []
    return plain_pieces(held.store, backup.record.path, part, keys, listener)


def _text(path: str) -> str:
    try:
        data = small(Path(path))
        return (_unlocked(data, path) if seal.locked(data) else data).decode()
    except OSError as gone:
        raise UsageError(f"{path}: {gone.strerror}", "it is the age identity that opens backups") from gone
    except UnicodeDecodeError as wrong:
        raise UsageError(f"{path} is no age identity file") from wrong


@lru_cache
def _unlocked(data: bytes, path: str) -> bytes:
    """Asked for once in a run."""
    return seal.unlocked(data, passphrase(path), path)
