"""A quarantined kube-apiserver on restored data: loopback only, its own certificates, no admission webhooks.

It is given the backup's own Service range, encryption configuration, service-account keys, feature gates and API
switches, since those decide what it can read; everything that would reach out of the scratch directory is left away:
webhooks for admission, authentication and authorization, audit, the advertised address, aggregated APIs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from drtool.core.errors import DrtoolError, NotFound, Unsound
from manifests.api import Api, Identity
from manifests.document import Unparsable, parse
from manifests.pki.expected import CLIENT, SERVER
from manifests.pki.issuing import issue, issue_authority, new_key
from manifests.pod import Component, Flag, StaticPod
from snapshots.bundle import Bundle
from snapshots.etcd import EtcdAccess
from snapshots.scratch import STOP_TIMEOUT, free_ports

MANIFEST = "/etc/kubernetes/manifests/kube-apiserver.yaml"
KEPT = (
    "service-cluster-ip-range",
    "service-account-issuer",
    "api-audiences",
    "feature-gates",
    "runtime-config",
    "storage-media-types",
    "etcd-prefix",
    "encryption-provider-config",
    "service-account-key-file",
    "service-account-signing-key-file",
)
QUARANTINE = (
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy",
    "PodSecurity",  # these three would list every Pod and Secret before the server is ready
    "ResourceQuota",
    "ServiceAccount",
)
GROUP = "system:masters"
UNREADABLE = "StorageError: corrupt object"  # apiserver/pkg/storage/errors.go; it never becomes ready then


@dataclass(frozen=True, slots=True)
class RunningApi:
    process: subprocess.Popen[bytes]
    api: Api
    log: Path


def program(given: str = "") -> Path:
    """`--apiserver`, else PATH. Raises NotFound."""
    found = given or shutil.which("kube-apiserver") or ""
    if not found or not os.access(found, os.X_OK):
        raise NotFound(f"no kube-apiserver {'at ' + given if given else 'on PATH'}", "name one with --apiserver FILE")
    return Path(found)


@contextmanager
def running(
    binary: Path, directory: Path, bundle: Bundle, etcd: EtcdAccess, timeout: float = 90.0
) -> Iterator[RunningApi]:
    """Ready when this yields; ended by its process id. Raises Unsound where the bundle lacks what it needs."""
    directory.mkdir(mode=0o700)
    flags, identity = _flags(directory, bundle, etcd)
    port = free_ports(1)[0]
    flags["secure-port"] = [str(port)]
    log = directory / "kube-apiserver.log"
    command = [str(binary), *(f"--{name}={value}" for name, values in flags.items() for value in values)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=directory)
    try:
        found = RunningApi(process, Api(f"127.0.0.1:{port}", identity), log)
        _wait(found, timeout)
        yield found
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _flags(directory: Path, bundle: Bundle, etcd: EtcdAccess) -> tuple[dict[str, list[str]], Identity]:
    identity = _certificates(directory)
    flags = {
        "bind-address": ["127.0.0.1"],
        "advertise-address": ["127.0.0.1"],
        "endpoint-reconciler-type": ["none"],
        "authorization-mode": ["RBAC"],
        "client-ca-file": [str(directory / "ca.crt")],
        "tls-cert-file": [str(directory / "server.crt")],
        "tls-private-key-file": [str(directory / "server.key")],
        "watch-cache": ["false"],  # it would read and decode every object before the first answer
        "disable-admission-plugins": [",".join(QUARANTINE)],
        "etcd-servers": list(etcd.endpoints),
        "etcd-cafile": [str(etcd.ca)],
        "etcd-certfile": [str(etcd.cert)],
        "etcd-keyfile": [str(etcd.key)],
    }
    for flag in _kept(bundle):
        value = flag.value
        if value.startswith("/"):
            value = str(_unpacked(directory, bundle, value))
        flags.setdefault(flag.name, []).append(value)
    return flags, identity


def _kept(bundle: Bundle) -> list[Flag]:
    manifest = bundle.file(MANIFEST)
    if manifest is None:
        raise Unsound(f"the node bundle has no {MANIFEST}", "what the API server must be given is not known")
    try:
        pod = StaticPod(MANIFEST, parse(MANIFEST, manifest.data)[0])
        component = Component("kube-apiserver", pod, pod.containers[0])
    except (Unparsable, IndexError) as broken:
        raise Unsound(f"the {MANIFEST} in the node bundle cannot be read: {broken}") from broken
    return [flag for flag in component.container.flags if flag.name in KEPT]


def _unpacked(directory: Path, bundle: Bundle, path: str) -> Path:
    """A file of the bundle, mode 0600 in the scratch directory."""
    held = bundle.file(path)
    if held is None:
        raise Unsound(f"the API server's flags name {path}, and the node bundle does not hold it")
    place = directory / path.strip("/").replace("/", "_")
    _write(place, held.data)
    return place


def _certificates(directory: Path) -> Identity:
    """A CA, a serving certificate for 127.0.0.1 and a client of system:masters, for this run alone."""
    now = datetime.now(UTC)
    authority = issue_authority("drtool-drill", now, new_key("ECDSA-P256"))
    server = issue(authority, "kube-apiserver", (SERVER,), now, new_key("ECDSA-P256"), names=("127.0.0.1", "localhost"))
    client = issue(authority, "drtool-drill", (CLIENT,), now, new_key("ECDSA-P256"), (GROUP,))
    _write(directory / "ca.crt", authority.certificate_pem)
    _write(directory / "server.crt", server.certificate_pem)
    _write(directory / "server.key", server.key_pem)
    return Identity(authority.certificate_pem, client.certificate_pem, client.key_pem)


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _wait(found: RunningApi, timeout: float) -> None:
    until = time.monotonic() + timeout
    problem = "it does not listen"
    while time.monotonic() < until:
        if found.process.poll() is not None:
            raise DrtoolError(f"kube-apiserver ended with status {found.process.returncode}: {_last_words(found.log)}")
        problem = found.api.ready()
        if not problem:
            return
        if "informer-sync" in problem and UNREADABLE in found.log.read_text(errors="replace"):
            raise Unsound(f"kube-apiserver cannot read what etcd holds: {_last_words(found.log)}")
        time.sleep(0.2)
    raise DrtoolError(f"kube-apiserver was not ready within {timeout:g} s: {problem}; {_last_words(found.log)}")


def _last_words(log: Path) -> str:
    """The last line that says why; usage and stack lines are no reason."""
    lines = log.read_text(errors="replace").strip().splitlines()
    telling = [line for line in lines if line.startswith(("E", "F", "Error")) or '"err"' in line]
    unreadable = [line[line.index(UNREADABLE) :][:400] for line in lines if UNREADABLE in line]
    return unreadable[-1] if unreadable else (telling or lines or ["it said nothing"])[-1][-400:]
