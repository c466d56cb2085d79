"""Drills a backup of a real cluster's data, Secrets under encryption at rest among them, up to a real kube-apiserver.

    python -m tests.e2e.drill_real

The data is ../shared/snapshots/real-1.37, whose etcd is booted on a scratch node and backed up. Needs etcd 3.7 and
kube-apiserver 1.37: $LAB (/tmp/drtool-lab). Without the encryption configuration the same drill must fail.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
from pathlib import Path

from drtool.commands.backup import backup
from drtool.commands.drill import Drill, Wish, drill
from drtool.commands.fetch import shelf
from drtool.commands.restore import Wanted, restore
from drtool.commands.scratch_node import ScratchNode, lay_scratch
from drtool.config import Config, Spool, StoreConfig
from snapshots import seal
from tests.e2e.fleet_job import program

REAL = Path("../shared/snapshots/real-1.37")
KEYS = "/etc/kubernetes/pki/encryption.yaml"
FLAG = "    - --enable-bootstrap-token-auth=true\n"


def made(place: Path, encrypted: bool) -> ScratchNode:
    """A node whose etcd holds the real data; its API server knows the keys only where `encrypted`."""
    node = lay_scratch(place / "cp-1")
    with gzip.open(REAL / "real.db.gz") as packed, (place / "real.db").open("wb") as db:
        shutil.copyfileobj(packed, db)
    node.data_dir.rmdir()
    restore(place / "real.db", node.data_dir, Wanted(name=node.design.name, peer_urls=node.peer_url))
    if encrypted:
        manifest = node.directory / "etc/kubernetes/manifests/kube-apiserver.yaml"
        text = manifest.read_text()
        assert FLAG in text
        manifest.write_text(text.replace(FLAG, f"{FLAG}    - --encryption-provider-config={KEYS}\n"))
        shutil.copy(REAL / "encryption.yaml", node.directory / KEYS.lstrip("/"))
    return node


def drilled(place: Path, encrypted: bool) -> Drill:
    place.mkdir()
    identity, recipient = seal.throwaway()
    (place / "store").mkdir()
    (place / "identity").touch(0o600)
    (place / "identity").write_text(f"{identity}\n")
    config = Config(
        store=StoreConfig(url=(place / "store").as_uri()),
        recipients=(recipient,),
        identities=(str(place / "identity"),),
        spool=Spool(""),
    )
    held, node, etcd = shelf(config), made(place, encrypted), program("etcd")
    with node.etcd(Path(etcd)):
        assert backup(config, held, node.root).good
    found = drill(held, held.choose(), Wish(etcd, program("kube-apiserver")))
    for line in found.proven:
        print(f"  proven: {line}")
    for line in found.not_proven:
        print(f"  not proven: {line}")
    print(f"{'PROVEN' if found.good else f'FAILED at {found.failed}'} in {found.rto:.1f} s", flush=True)
    return found


def main() -> None:
    if not REAL.is_dir():
        raise SystemExit(f"no real data at {REAL}")
    with tempfile.TemporaryDirectory() as name:
        assert drilled(Path(name) / "keys", encrypted=True).good
        bad = drilled(Path(name) / "no-keys", encrypted=False)
        assert not bad.good, "Secrets were read without their keys"
        assert "encrypt" in bad.failed, bad.failed


if __name__ == "__main__":
    main()
