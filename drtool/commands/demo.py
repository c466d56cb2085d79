"""The whole story in a scratch directory: a node, an outage named, a backup in S3, the data lost and put back."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from drtool.commands.backup import backup
from drtool.commands.check import check
from drtool.commands.fetch import Shelf, db_pieces, shelf
from drtool.commands.restore import Wanted, restore
from drtool.commands.scratch_node import ScratchNode, lay_scratch
from drtool.commands.verify import verify
from drtool.config import Config, Signing, Spool
from drtool.core.errors import DrtoolError
from manifests.kubeadm import kernel_addresses
from snapshots import scratch, scratch_s3, seal
from snapshots.etcd import Etcd

OBJECTS = 3000
NEW_ADDRESS = "192.0.2.120"


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that was done, what came of it, and how long it took in seconds."""

    what: str
    result: str
    seconds: float


Tell = Callable[[Done], None]


def demo(tell: Tell) -> float:
    """Returns the seconds it took. NotFound where etcd or the S3 server are not installed.

    Everything is started below one temporary directory, and is ended and removed however this ends.
    """
    scratch.binary()
    scratch_s3.binary()
    began = time.monotonic()
    with TemporaryDirectory(prefix="drtool-demo-") as directory, ExitStack() as running:
        _play(Path(directory), running, tell)
    return time.monotonic() - began


def _play(directory: Path, running: ExitStack, tell: Tell) -> None:
    with _step(tell, "lay a node as kubeadm does, with its own PKI") as says:
        node = lay_scratch(directory / "cp-1")
        says(f"{node.design.name} at {node.design.address}")
    with ExitStack() as etcd_runs:
        with _step(tell, "boot etcd from its manifest, over TLS") as says:
            etcd = etcd_runs.enter_context(node.etcd())
            says(f"etcd {_version(node)} at {etcd.client_url}, process {etcd.pid}")
        with _step(tell, f"write {OBJECTS} Kubernetes-shaped objects") as says:
            node.fill(OBJECTS)
            kept = node.keys()
            says(f"{len(kept)} keys")
        _outage(node, tell)
        with _step(tell, "start an S3 server") as says:
            server = running.enter_context(scratch_s3.running(directory / "s3"))
            says(f"SeaweedFS at {server.endpoint}, process {server.pid}")
        config = _configuration(directory, server)
        held = shelf(config, server.credentials)
        _back_up(node, config, held, tell)
    with _step(tell, "stop etcd and destroy its data directory") as says:
        shutil.rmtree(node.data_dir)
        says("/var/lib/etcd is gone")
    _put_back(node, held, kept, tell)


def _outage(node: ScratchNode, tell: Tell) -> None:
    """DHCP gives the host another address; the doctor must name that and nothing else."""
    with _step(tell, "move the host's address, and ask what is wrong") as says:
        _set_address(node, NEW_ADDRESS)
        found = check(node.root).verdict
        _set_address(node, node.design.address)
        if found.root_causes != ("node-address-changed",):
            raise DrtoolError(f"the doctor names {', '.join(found.root_causes) or 'nothing'}")
        says(f"{found.findings[0].finding.title}; {len(found.findings) - 1} more findings follow from it")


def _set_address(node: ScratchNode, address: str) -> None:
    for path, text in kernel_addresses(address).items():
        (node.directory / path.lstrip("/")).write_text(text)


def _configuration(directory: Path, server: scratch_s3.Server) -> Config:
    """An age identity that opens backups and an Ed25519 key that signs them, both made for this run."""
    identity, recipient = seal.throwaway()
    opens, signs = directory / "identity.txt", directory / "signing.pem"
    _write_private(opens, f"{identity}\n".encode())
    _write_private(
        signs,
        Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
    return Config(
        store=server.config("clusters"),
        recipients=(recipient,),
        identities=(str(opens),),
        signing=Signing(key=str(signs)),
        spool=Spool(directory=""),
    )


def _write_private(path: Path, data: bytes) -> None:
    path.touch(0o600)
    path.write_bytes(data)


def _back_up(node: ScratchNode, config: Config, held: Shelf, tell: Tell) -> None:
    with _step(tell, "back up into S3: snapshot and node, sealed, signed, read back") as says:
        result = backup(config, held, node.root)
        if not result.good:
            raise DrtoolError(f"the backup is not good: {result.failure or ', '.join(result.record.incomplete)}")
        says(f"{result.record.id}, {result.record.keys} keys, {result.record.db.plain_size >> 10} KiB of db")
    with _step(tell, "verify it: fetch, open, compare") as says:
        verdict = verify(held, "latest")
        says("opened and equal to its record" + (", signature right" if verdict.signed else ""))


def _put_back(node: ScratchNode, held: Shelf, kept: dict[bytes, bytes], tell: Tell) -> None:
    with _step(tell, "restore from S3 into a new data directory") as says:
        wanted = Wanted(name=node.design.name, peer_urls=node.peer_url)
        made = restore(db_pieces(held, held.choose()), node.data_dir, wanted)
        says(f"revision {made.revision}, bumped to {made.bumped} so that no watcher mistakes old for new")
    with _step(tell, "boot etcd on it, and compare every key") as says, node.etcd():
        found = node.keys()
        if found != kept:
            differing = sum(found.get(key) != value for key, value in kept.items())
            raise DrtoolError(f"{differing} of {len(kept)} keys differ after the restore")
        says(f"all {len(found)} keys are equal")


@contextmanager
def _step(tell: Tell, what: str) -> Iterator[Callable[[str], None]]:
    said: list[str] = []
    began = time.monotonic()
    yield said.append
    tell(Done(what, " ".join(said), time.monotonic() - began))


def _version(node: ScratchNode) -> str:
    with Etcd(node.access) as etcd:
        return etcd.status().version
