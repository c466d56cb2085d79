"""A real kube-apiserver over the real snapshot, on loopback; ended by its process id."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.etcd_server import LAB, EtcdServer, free_port
from tests.registry import real

PROGRAMS = ("kube-apiserver", "kubectl", "etcd", "etcdutl")
TOKEN = "made-up-token"
SECONDS_TO_BOOT = 120


def programs() -> Path | None:
    """A directory with all of them; None where nothing was compiled."""
    found = [place for place in sorted(LAB.glob("*/bin")) if all((place / name).is_file() for name in PROGRAMS)]
    return found[-1] if found else None


@dataclass(frozen=True)
class Cluster:
    etcd_url: str
    words: tuple[str, ...]

    def kubectl(self, *words: str, check: bool = True) -> str:
        done = subprocess.run([*self.words, *words], capture_output=True, text=True, check=False, timeout=120)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout


@contextmanager
def served(directory: Path) -> Iterator[Cluster]:
    """The real snapshot behind an API server that decrypts it."""
    place = programs()
    assert place is not None
    db = real.database(directory)
    restore = [
        str(place / "etcdutl"),
        "snapshot",
        "restore",
        str(db),
        "--data-dir",
        str(directory / "m1.etcd"),
        "--name=m1",
    ]
    (directory / "encryption.yaml").write_text(real.configuration())
    (directory / "tokens.csv").write_text(f'{TOKEN},admin,1,"system:masters"\n')
    key = rsa.generate_private_key(65537, 2048)
    (directory / "sa.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (directory / "sa.pub").write_bytes(public)
    peer = free_port()
    cluster = f"m1=http://127.0.0.1:{peer}"
    address = ("--initial-cluster", cluster, "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}")
    subprocess.run([*restore, *address], check=True, capture_output=True)
    with EtcdServer(place / "etcd", directory, peer_port=peer, cluster=cluster) as etcd:
        url, port = f"http://127.0.0.1:{etcd.client_port}", free_port()
        with _apiserver(place, directory, url, port):
            server = ("--server", f"https://127.0.0.1:{port}", "--token", TOKEN, "--insecure-skip-tls-verify")
            found = Cluster(url, (str(place / "kubectl"), *server))
            _wait(found)
            yield found


@contextmanager
def _apiserver(place: Path, directory: Path, etcd: str, port: int) -> Iterator[None]:
    arguments = [
        f"--etcd-servers={etcd}", f"--secure-port={port}", "--bind-address=127.0.0.1",
        f"--cert-dir={directory}/certs", "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={directory}/sa.key", f"--service-account-key-file={directory}/sa.pub",
        "--service-cluster-ip-range=10.96.0.0/12", f"--encryption-provider-config={directory}/encryption.yaml",
        f"--token-auth-file={directory}/tokens.csv", "--authorization-mode=RBAC",
    ]  # fmt: skip
    with (directory / "apiserver.log").open("wb") as log:
        process = subprocess.Popen([str(place / "kube-apiserver"), *arguments], stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


def _wait(cluster: Cluster) -> None:
    until = time.monotonic() + SECONDS_TO_BOOT
    while "ok" not in cluster.kubectl("get", "--raw", "/readyz", check=False):
        if time.monotonic() > until:
            raise AssertionError("kube-apiserver did not become ready")
        time.sleep(0.5)
