"""Every certificate and kubeconfig credential of a node, with who reads it; never any key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drtool.commands.capture import gather
from drtool.commands.unread import cannot_tell, unread
from drtool.core.errors import CannotTell
from drtool.host.root import Entry, Root
from manifests.node import HOME_CONFIG, PKI, Node, seen
from manifests.pki.certificates import Certificate, utc
from manifests.pki.credentials import Credential, credentials
from manifests.pki.expected import AUTHORITIES
from manifests.pki.kubelet_client import DIRECTORY

KUBERNETES = "/etc/kubernetes"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@dataclass(frozen=True, slots=True)
class Row:
    """`readers` are the programs that read the file, none for one that nobody names; `role` what it is there for."""

    certificate: Certificate
    role: str
    readers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inventory:
    node: Node
    rows: tuple[Row, ...]

    @property
    def unread(self) -> Entry | None:
        """A kubeconfig, or the manifests that name who reads what, where this user may not read it."""
        kubeconfigs = (entry for entry in self.node.capture.below(KUBERNETES) if entry.path.endswith(".conf"))
        return unread([self.node.entry(self.node.manifests_directory), *kubeconfigs])


def certs(root: Root, at: datetime | None = None) -> Inventory:
    """CannotTell where there is no certificate below the root."""
    node = seen(gather(root, probe=False), at)
    found = Inventory(node, tuple(_rows(node)))
    if not found.rows and found.unread is not None:
        raise cannot_tell(root.directory, found.unread)
    if not found.rows:
        raise CannotTell(
            f"{root.directory} holds no certificate and no kubeconfig of Kubernetes",
            "--root takes the directory that stands for the node's /",
        )
    return found


def _rows(node: Node) -> Iterator[Row]:
    """CAs first, then what is presented, then what is only trusted or lies about; each certificate of a file once."""
    told: set[tuple[str, str]] = set()
    for row in (*_authorities(node), *_presented(node), *_trusted(node), *_left(node)):
        place = (row.certificate.path, row.certificate.fingerprint)
        if place not in told:
            told.add(place)
            yield row


def _authorities(node: Node) -> Iterator[Row]:
    for authority in AUTHORITIES:
        path = f"{PKI}/{authority.path}.crt"
        pem = node.pems.get(path)
        for certificate in pem.certificates if pem else ():
            yield Row(certificate, "CA", _named_by(node, path))


def _presented(node: Node) -> Iterator[Row]:
    for credential in credentials(node):
        for certificate in credential.pem.certificates if credential.pem else ():
            yield Row(certificate, credential.role, _readers(node, credential))


def _readers(node: Node, credential: Credential) -> tuple[str, ...]:
    if credential.config is None:
        return tuple(dict.fromkeys((credential.reader, *_named_by(node, credential.path))))
    readers = {
        "kubelet.conf": "kubelet",
        "controller-manager.conf": "kube-controller-manager",
        "scheduler.conf": "kube-scheduler",
    }
    return (readers.get(credential.reader, "kubectl"),)


def _trusted(node: Node) -> Iterator[Row]:
    configs = [*node.kubeconfigs.values(), *([node.home_kubeconfig] if node.home_kubeconfig else [])]
    for config in configs:
        for certificate in config.ca.certificates if config.ca else ():
            reader = "kubectl" if config.path == HOME_CONFIG else config.path.rpartition("/")[2]
            yield Row(certificate, "CA that a kubeconfig trusts", (reader,))


def _left(node: Node) -> Iterator[Row]:
    """Files that nothing above speaks of; what a link leads to is told under the link's name."""
    targets = {entry.target for entry in node.capture.entries.values() if entry.kind == "link"}
    for path, pem in node.pems.items():
        if path in targets:
            continue
        for certificate in pem.certificates:
            if path == f"{DIRECTORY}/kubelet.crt":
                yield Row(certificate, "kubelet server", ("kubelet",))
            else:
                yield Row(certificate, "", _named_by(node, path))


def _named_by(node: Node, path: str) -> tuple[str, ...]:
    found = []
    for program in COMPONENTS:
        component = node.components.get(program)
        flags = component.container.flags if component else ()
        if component and any((component.container.host_path(flag.value) or flag.value) == path for flag in flags):
            found.append(program)
    clients = node.kubelet.config.get("authentication", "x509", "clientCAFile") if node.kubelet.config else None
    return (*found, "kubelet") if clients == path else tuple(found)


def state(node: Node, certificate: Certificate) -> str:
    if node.at > certificate.not_after:
        return "expired"
    return "not yet valid" if node.at < certificate.not_before else "valid"


def as_data(inventory: Inventory) -> dict[str, Any]:
    node = inventory.node
    return {
        "schemaVersion": 1,
        "node": node.name,
        "at": utc(node.at),
        "certificates": [_record(node, row) for row in inventory.rows],
    }


def _record(node: Node, row: Row) -> dict[str, Any]:
    certificate = row.certificate
    return {
        "file": certificate.path,
        "line": certificate.line,
        "role": row.role,
        "subject": certificate.subject,
        "names": list(certificate.names()),
        "issuer": certificate.issuer,
        "isCA": certificate.is_ca,
        "notBefore": utc(certificate.not_before),
        "notAfter": utc(certificate.not_after),
        "daysLeft": (certificate.not_after - node.at).days,
        "state": state(node, certificate),
        "fingerprint": certificate.fingerprint,
        "readBy": list(row.readers),
    }
