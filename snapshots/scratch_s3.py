"""A throwaway S3 server on loopback (SeaweedFS), for the demo and the tests; ended by its process id."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from drtool.config import Credentials, StoreConfig
from drtool.core.errors import DrtoolError, NotFound
from snapshots.scratch import free_ports, last_words

START_TIMEOUT, GRACE = 60.0, 3.0


@dataclass(frozen=True, slots=True)
class Server:
    """One running server with one empty bucket."""

    process: subprocess.Popen[bytes]
    endpoint: str
    bucket: str
    credentials: Credentials = field(repr=False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def config(self, prefix: str = "", endpoint: str = "") -> StoreConfig:
        return StoreConfig(
            url=f"s3://{self.bucket}/{prefix}".rstrip("/"), endpoint=endpoint or self.endpoint, path_style=True
        )

    def environment(self) -> dict[str, str]:
        """For programs that take the usual AWS variables."""
        return {
            "AWS_ACCESS_KEY_ID": self.credentials.access_key,
            "AWS_SECRET_ACCESS_KEY": self.credentials.secret_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        }


def binary() -> Path:
    """The `weed` program: beside this Python, or on PATH. Raises NotFound."""
    beside = Path(sys.executable).parent / "weed"
    if beside.is_file():
        return beside
    on_path = shutil.which("weed")
    if on_path:
        return Path(on_path)
    raise NotFound("no weed program here", "install drtool with its demo extra: drtool[demo]")


@contextmanager
def running(directory: Path, bucket: str = "backups") -> Iterator[Server]:
    """A server on `directory` (made when absent) with `bucket`, answering when this yields."""
    directory.mkdir(parents=True, exist_ok=True)
    names = ("master", "volume", "filer", "s3")
    ports = dict(zip([*names, *(f"{name}.grpc" for name in names)], free_ports(2 * len(names)), strict=True))
    credentials = Credentials(f"drtool{secrets.token_hex(4)}", secrets.token_hex(16))
    config = directory / "s3.json"
    config.write_text(json.dumps({"identities": [_identity(credentials)]}))
    config.chmod(0o600)
    command = [
        str(binary()),
        "-logtostderr=true",
        "server",
        f"-dir={directory}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-filer",
        "-s3",
        f"-s3.config={config}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-master.volumeSizeLimitMB=1024",
        "-volume.max=20",
        "-volume.minFreeSpace=16MiB",  # it would refuse to write on the last 1 % of a disk, however large
        *(f"-{name}.port={ports[name]}" for name in names),
        *(f"-{name}.port.grpc={ports[f'{name}.grpc']}" for name in names),
    ]
    log = directory / "weed.log"
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=directory)
    try:
        server = Server(process, f"http://127.0.0.1:{ports['s3']}", bucket, credentials)
        _wait(server, ports["s3"], log)
        yield server
    finally:
        _end(process)


def _identity(credentials: Credentials) -> dict[str, object]:
    keys = {"accessKey": credentials.access_key, "secretKey": credentials.secret_key}
    return {"name": "drtool", "credentials": [keys], "actions": ["Admin", "Read", "List", "Tagging", "Write"]}


def _wait(server: Server, port: int, log: Path) -> None:
    from snapshots.stores.s3 import make_bucket

    until = time.monotonic() + START_TIMEOUT
    problem = "it does not listen"
    while time.monotonic() < until:
        if server.process.poll() is not None:
            raise DrtoolError(f"weed ended with status {server.process.returncode}: {last_words(log)}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            try:
                make_bucket(server.bucket, server.config(), server.credentials)
                return
            except DrtoolError as not_yet:
                problem = not_yet.what
        time.sleep(0.2)
    raise DrtoolError(f"the S3 server did not serve within {START_TIMEOUT:g} s: {problem}; {last_words(log)}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
