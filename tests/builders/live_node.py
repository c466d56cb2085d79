"""A control-plane node's tree below a directory, whose etcd really runs, over TLS, as its manifest says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from drtool.host.root import Root
from manifests.kubeadm import Design, lay
from snapshots import scratch
from snapshots.etcd import Etcd, EtcdAccess

PKI = "etc/kubernetes/pki/etcd"


@dataclass(frozen=True)
class LiveNode:
    directory: Path
    etcd: scratch.Running

    @property
    def root(self) -> Root:
        return Root(self.directory)

    @property
    def access(self) -> EtcdAccess:
        pki = self.directory / PKI
        return EtcdAccess((self.etcd.client_url,), pki / "ca.crt", pki / "server.crt", pki / "server.key")

    def fill(self, count: int = 200, size: int = 300, prefix: str = "/registry/pods/default") -> None:
        with Etcd(self.access) as etcd:
            for first in range(0, count, 100):
                pairs = [
                    (f"{prefix}/web-{number:05d}".encode(), bytes([number % 256]) * size)
                    for number in range(first, min(first + 100, count))
                ]
                etcd.put_all(pairs)


@contextmanager
def live_node(directory: Path, name: str = "cp-1") -> Iterator[LiveNode]:
    client, peer, metrics = scratch.free_ports(3)
    design = Design(name=name, address="127.0.0.1", ports=(client, peer, metrics))
    lay(directory, design, datetime.now(UTC) - timedelta(hours=1))
    pki = directory / PKI
    tls = scratch.Tls(pki / "ca.crt", pki / "server.crt", pki / "server.key")
    data = directory / "var/lib/etcd"
    with scratch.started(data, client, peer, name=name, tls=tls) as etcd:
        scratch.wait(etcd, 60)
        yield LiveNode(directory, etcd)
