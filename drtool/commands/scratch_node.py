"""A control-plane node's tree in a scratch directory whose etcd really runs: for the demo, rehearsals and tests.

kubeadm's files with a PKI of their own; etcd is started from its manifest's flags, with paths inside the tree and ports
that are free on loopback. Never near a real node: it only ever uses the directory it is given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from drtool.host.root import Root
from manifests.kubeadm import Design, lay
from manifests.node import read
from snapshots import scratch
from snapshots.etcd import Etcd, EtcdAccess

PKI = "etc/kubernetes/pki/etcd"
BATCH = 100
OWN_FLAGS = ("name", "initial-cluster", "initial-cluster-state", "initial-cluster-token", "snapshot-count")


@dataclass(frozen=True)
class ScratchNode:
    directory: Path
    design: Design

    @property
    def root(self) -> Root:
        return Root(self.directory)

    @property
    def data_dir(self) -> Path:
        return self.directory / "var/lib/etcd"

    @property
    def access(self) -> EtcdAccess:
        pki = self.directory / PKI
        url = f"https://127.0.0.1:{self.design.ports[0]}"
        return EtcdAccess((url,), pki / "ca.crt", pki / "server.crt", pki / "server.key")

    @property
    def peer_url(self) -> str:
        return f"https://127.0.0.1:{self.design.ports[1]}"

    @contextmanager
    def etcd(self, program: Path | None = None) -> Iterator[scratch.Running]:
        """The member that the manifest describes, serving over TLS when this yields; ended by its process id."""
        manifest = read(self.root).etcd
        pki = self.directory / PKI
        tls = scratch.Tls(pki / "ca.crt", pki / "server.crt", pki / "server.key")
        extra = [f"--{name}={manifest.value(name)}" for name in OWN_FLAGS if manifest.has(name)]
        extra = [flag.replace(f"//{self.design.host}:", "//127.0.0.1:") for flag in extra]
        client, peer, _ = self.design.ports
        with scratch.started(
            self.data_dir, client, peer, name=self.design.name, tls=tls, program=program, extra=extra
        ) as etcd:
            scratch.wait(etcd, 60)
            yield etcd

    def fill(self, count: int) -> None:
        """Kubernetes-shaped objects: Deployments, Pods, ConfigMaps, Secrets over a dozen namespaces, as JSON."""
        with Etcd(self.access) as etcd:
            objects = [_object(number) for number in range(count)]
            for first in range(0, count, BATCH):
                etcd.put_all(objects[first : first + BATCH])

    def keys(self) -> dict[bytes, bytes]:
        """Every live key with its value, as the running server gives it."""
        with Etcd(self.access) as etcd:
            return {found.key: found.value for found in etcd.pages(b"/registry/", b"/registry0")}


def lay_scratch(directory: Path, name: str = "cp-1", address: str = "192.0.2.111") -> ScratchNode:
    """`directory` must be new or empty: nothing that exists is ever reused."""
    client, peer, metrics = scratch.free_ports(3)
    design = Design(name=name, address=address, ports=(client, peer, metrics))
    lay(directory, design, datetime.now(UTC) - timedelta(minutes=10))
    return ScratchNode(directory, design)


KINDS = (("pods", "v1", "Pod"), ("deployments", "apps/v1", "Deployment"), ("configmaps", "v1", "ConfigMap"))


def _object(number: int) -> tuple[bytes, bytes]:
    resource, version, kind = KINDS[number % len(KINDS)]
    namespace, name = f"team-{number % 12:02}", f"{resource[:-1]}-{number:05}"
    body = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": f"app-{number % 40}"}},
        "data": {"settings": f"{number:064x}"},
    }
    return f"/registry/{resource}/{namespace}/{name}".encode(), json.dumps(body).encode()
