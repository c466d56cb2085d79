"""From what `--from` says to the objects in it: a file, a data directory, a live etcd, a stored backup.

What opens a backup needs the store, what reaches a live etcd needs the client: both are imported only then.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from drtool.config import Config
from drtool.core.errors import CannotTell, Locked, NotFound
from drtool.core.events import TELL, Listener, nobody, silent
from drtool.host.beside import beside
from drtool.host.reading import small
from drtool.host.root import Root
from snapshots import bolt, datadir, mvcc
from snapshots.bolt import Bolt
from snapshots.catalog import can_name
from snapshots.registry import encryption
from snapshots.registry.encryption import Keys
from snapshots.registry.keys import PREFIX
from snapshots.registry.objects import Registry

if TYPE_CHECKING:
    from snapshots.bundle import Bundle

LIVE = "live"
DB_PLACES = ("member/snap/db", "snap/db", "db")
APISERVER = "/etc/kubernetes/manifests/kube-apiserver.yaml"
ENCRYPTION_FLAG = "encryption-provider-config"


@dataclass(frozen=True, slots=True)
class Opening:
    """How sources are opened: `encryption` is an EncryptionConfiguration, `root` the node that knows the rest.

    `managed` keeps metadata.managedFields, which few want to see.
    """

    config: Config = field(default_factory=Config)
    encryption: Path | None = None
    prefix: str = PREFIX
    managed: bool = False
    root: Root = field(default_factory=lambda: Root(Path("/")))
    listener: Listener = silent


@contextmanager
def opened(source: str, how: Opening, revision: int | None = None) -> Iterator[Registry]:
    """The objects of `source` as of `revision` (None: the newest).

    `live` and URLs: a running etcd. An existing path: a snapshot, a raw db or a data directory. Anything else names
    a stored backup (`latest`, an id or a part of one). Raises NotFound, Unsound, UsageError, Locked, CannotOpen, and
    what the store and the client raise.
    """
    if source == LIVE or "://" in source:
        with _live(source, how, revision) as registry:
            yield registry
    elif Path(source).exists():
        with mvcc.opened(database(Path(source))) as keyspace, _compared(keyspace.bolt):
            yield _registry(keyspace, source, _secrets(how), how, revision)
    elif not can_name(source):
        raise NotFound(
            f"{source}: no such file or directory", "give a snapshot, a raw db, a data directory or a backup"
        )
    else:
        with _backup(source, how) as (keyspace, secrets, name):
            yield _registry(keyspace, name, secrets, how, revision)


@contextmanager
def _compared(db: Bolt) -> Iterator[None]:
    """The trailing hash is compared meanwhile; a wrong one is told, and no more: the file may be all there is."""
    if TELL.get() is nobody:
        yield
        return
    with beside(db.trailer_holds) as holds:
        yield
        if holds() is False:
            TELL.get()(f"{db.name} was changed or cut after it was saved: its trailing hash is wrong (drtool status)")


def database(path: Path) -> Path:
    """The db of a data directory, or `path` itself. Raises NotFound, and Locked where a running etcd has it."""
    if path.is_dir():
        found = next((path / place for place in DB_PLACES if (path / place).is_file()), None)
        if found is None:
            raise NotFound(f"{path}: no etcd data directory: {DB_PLACES[0]} is not in it")
        path = found
    if path.is_file() and datadir.in_use(path):
        raise Locked(
            f"{path}: a running etcd has it open", "read from etcd itself with --from live, or from a snapshot"
        )
    return path


def _registry(keyspace: mvcc.Keyspace, name: str, secrets: Keys, how: Opening, revision: int | None) -> Registry:
    return Registry(keyspace.index(revision), name, secrets, how.prefix, keyspace.history, how.managed)


@contextmanager
def _live(source: str, how: Opening, revision: int | None) -> Iterator[Registry]:
    from drtool.commands.source import etcd_access
    from manifests.node import read
    from snapshots.etcd import Etcd
    from snapshots.registry.live import Live

    config = how.config
    if source != LIVE:
        named = msgspec.structs.replace(config.etcd, endpoints=tuple(source.split(",")))
        config = msgspec.structs.replace(config, etcd=named)
    with Etcd(etcd_access(config, read(how.root), how.root)) as client:
        live = Live(client, revision or client.status().revision)
        yield Registry(live, client.endpoint, _secrets(how), how.prefix, live.history, how.managed)


@contextmanager
def _backup(wanted: str, how: Opening) -> Iterator[tuple[mvcc.Keyspace, Keys, str]]:
    """The snapshot of a stored backup, in memory only: plaintext reaches no disk."""
    from drtool.commands import fetch

    shelf, backup = fetch.named(how.config, wanted)
    descriptor = os.memfd_create("drtool-snapshot", os.MFD_CLOEXEC)
    with os.fdopen(descriptor, "w+b") as file:
        for piece in fetch.db_pieces(shelf, backup, how.listener):
            file.write(piece)
        file.flush()
        bundle = None if how.encryption else fetch.node_bundle(shelf, backup)
        secrets = _bundled(bundle, backup.id) if bundle else _secrets(how)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield mvcc.keyspace(bolt.parse(data, backup.id)), secrets, backup.id


def _bundled(bundle: Bundle, name: str) -> Keys:
    """The EncryptionConfiguration among the node's files; no keys where it has none."""
    for file in bundle.files:
        if b"EncryptionConfiguration" in file.data:
            return encryption.parse(file.data.decode("utf-8", "replace"), f"{name}: {file.path}")
    return Keys()


def _secrets(how: Opening) -> Keys:
    """From the named file, else from the one that this node's API server is told to use."""
    if how.encryption is not None:
        return encryption.parse(_text(how.encryption), str(how.encryption))
    if how.root.read(APISERVER, 0).kind != "file":
        return Keys()
    from manifests.node import read

    component = read(how.root).components.get("kube-apiserver")
    named = component.value(ENCRYPTION_FLAG) if component else ""
    if component is None or not named:
        return Keys()
    path = component.container.host_path(named) or named
    entry = how.root.read(path, encryption.LARGEST_CONFIGURATION)
    if entry.data is None:  # what is encrypted is then named as locked, and the rest can be read
        return Keys()
    return encryption.parse(entry.data.decode("utf-8", "replace"), path)


def _text(path: Path) -> str:
    try:
        return small(path).decode()
    except OSError as gone:
        raise NotFound(f"{path}: {gone.strerror}", "it is the EncryptionConfiguration that opens values") from gone
    except UnicodeDecodeError as wrong:
        raise CannotTell(f"{path}: no text, so no EncryptionConfiguration") from wrong
