"""A stand-in for the kubelet on a scratch node: runs the real etcd as long as, and as, its manifest says.

It reads the flags from the manifest, with paths inside the scratch root. URLs to listen on that name an address of the
node (as the node's own kernel files tell them) are listened on at 127.0.0.1; any other is left to etcd, which cannot
bind it, as on a real node. The log lies where a container's would. Loopback only; ended by its process id.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from drtool.commands.practice import RESTART, RUNNING, STOPPED, Known
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.errors import DrtoolError
from drtool.host.root import Root
from drtool.host.writing import write
from manifests.network.addresses import Addresses, address_of
from manifests.node import read
from manifests.pod import Component
from snapshots.scratch import STOP_TIMEOUT

MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"
LISTEN = ("listen-client-urls", "listen-peer-urls", "listen-metrics-urls")
HOST = re.compile(r"(?<=//)(\[[^]]+\]|[^:/,]+)(?=:)")
TICK = 0.2
LONGEST_WAIT = 10.0


class Kubelet:
    """One thread looks after etcd. `place` holds what it is told (by files), and what it tells."""

    def __init__(self, root: Root, place: Path, program: Path) -> None:
        self.root, self.place, self.program = root, place, program
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._known: list[Known] = []
        self._manifest = ""
        self._seen: set[str] = set()
        self._failures = 0
        self._not_before = 0.0
        place.mkdir(mode=0o700, parents=True)
        self._tell()
        self._thread = threading.Thread(target=self._run, name="scratch-kubelet")
        self._thread.start()

    @property
    def pid(self) -> int:
        """Of the etcd that runs; 0 for none."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else 0

    @property
    def stopped(self) -> bool:
        return (self.place / STOPPED).exists()

    @contextmanager
    def halted(self) -> Iterator[None]:
        """As a host that is switched off: etcd is gone while the block runs, and the kubelet comes back after it."""
        with self._lock:
            self._end_etcd()
            yield
            (self.place / STOPPED).unlink(missing_ok=True)
            self._failures, self._not_before = 0, 0.0

    def end(self) -> None:
        """Returns when etcd is gone."""
        self._over.set()
        self._thread.join()
        self._end_etcd()

    def _run(self) -> None:
        while not self._over.wait(TICK):
            with self._lock:
                self._look()
                if not self.stopped:
                    self._sync(self._wanted())

    def _sync(self, wanted: str) -> None:
        if (self.place / RESTART).exists():
            (self.place / RESTART).unlink(missing_ok=True)
            self._failures, self._not_before = 0, 0.0
        self._note_others()
        if self.pid and wanted != self._manifest:
            self._end_etcd()
        if wanted and not self.pid and time.monotonic() >= self._not_before:
            self._start(wanted)

    def _look(self) -> None:
        """A process that ended is written down, and started again a little later each time."""
        if self._process is not None and self._process.poll() is not None:
            self._gone()
            self._failures += 1
            self._not_before = time.monotonic() + min(LONGEST_WAIT, 0.25 * 2**self._failures)

    def _wanted(self) -> str:
        """The manifest's digest, "" where there is none."""
        data = self.root.read(MANIFEST, 1 << 20).data
        return hashlib.md5(data, usedforsecurity=False).hexdigest() if data else ""

    def _note_others(self) -> None:
        """Programs that a scratch node does not have: each time a manifest appears, a container that ended at once."""
        there = {name for name in self.root.names(str(PurePosixPath(MANIFEST).parent)) if name.endswith(".yaml")}
        for name in sorted(there - self._seen - {PurePosixPath(MANIFEST).name}):
            program = name.removesuffix(".yaml")
            self._known.append(Known(secrets.token_hex(32), program, program, False, time.time(), 0))
            self._tell()
        self._seen = there

    def _start(self, manifest: str) -> None:
        try:
            node = read(self.root)
            command = [str(self.program), *arguments(node.etcd, node.addresses, self.root)]
        except (EvidenceMissing, NotApplicable, DrtoolError, OSError):
            return  # a manifest that cannot be read is waited for, as the kubelet does
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        self._process, self._manifest = process, manifest
        pod = f"etcd-{node.name}"
        logs = self.root.directory / "var/log/pods" / f"kube-system_{pod}_{manifest}" / "etcd"
        logs.mkdir(parents=True, exist_ok=True)
        number = len(list(logs.iterdir()))
        if process.stderr is not None:
            threading.Thread(target=_keep, args=(process.stderr, logs / f"{number}.log"), name="etcd-log").start()
        self._known.append(Known(secrets.token_hex(32), "etcd", pod, True, time.time(), process.pid))
        self._tell()

    def _end_etcd(self) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._gone()

    def _gone(self) -> None:
        self._process = None
        self._known = [msgspec.structs.replace(one, running=False) for one in self._known]
        self._tell()

    def _tell(self) -> None:
        write(self.place / RUNNING, msgspec.json.encode(self._known), 0o600)


@contextmanager
def kubelet(root: Root, place: Path, program: Path) -> Iterator[Kubelet]:
    """Runs until the block ends; then etcd is gone, too."""
    running = Kubelet(root, place, program)
    try:
        yield running
    finally:
        running.end()


def arguments(etcd: Component, addresses: Addresses, root: Root) -> list[str]:
    """The manifest's flags as they are on the scratch node."""
    flags = ["--unsafe-no-fsync=true"]
    for flag in etcd.container.flags:
        value = flag.value
        if value.startswith("/"):
            value = str(root.directory / (etcd.container.host_path(value) or value).lstrip("/"))
        if flag.name in LISTEN:
            value = ",".join(
                dict.fromkeys(HOST.sub(lambda m: _bound(m[1], addresses), one) for one in value.split(","))
            )
        flags.append(f"--{flag.name}={value}")
    return flags


def _bound(host: str, addresses: Addresses) -> str:
    address = address_of(host.strip("[]"))
    if address is None or address.is_loopback:
        return host
    return "127.0.0.1" if address.is_unspecified or addresses.has(address) else host


def _keep(lines: IO[bytes], place: Path) -> None:
    """The lines of a container as the runtime keeps them: time, stream, F for a whole line, text."""
    with lines, place.open("ab", buffering=0) as file:
        for line in lines:
            now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "000Z")
            file.write(f"{now} stderr F ".encode() + line.rstrip(b"\n") + b"\n")
