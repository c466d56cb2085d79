"""An HTTP proxy in front of a real S3 server that goes wrong in the ways that networks and stores do."""

from __future__ import annotations

import http.client
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

TRAILER = b"\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"


class Fault(StrEnum):
    NONE = "none"
    ERROR = "error"  # 503 instead of doing it
    REFUSED = "refused"  # 403 instead of doing it
    RESET = "reset"  # the connection dies before the server hears of it
    LOST = "lost"  # the server does it, the answer is lost
    STALL = "stall"  # nothing comes back
    CUT = "cut"  # half of the answer's body
    CORRUPT_UP = "corrupt-up"  # one bit of what is sent
    CORRUPT_DOWN = "corrupt-down"  # one bit of what is read
    TRAILER = "trailer"  # objects come back with the SDK's checksum trailer in them


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    number: int

    @property
    def of_part(self) -> bool:
        return "partNumber=" in self.path

    @property
    def key(self) -> str:
        return urlsplit(self.path).path


Choice = Callable[[Request], Fault]


def always(_: Request) -> Fault:
    return Fault.NONE


def at_random(seed: int, share: float, faults: tuple[Fault, ...]) -> Choice:
    chance = random.Random(seed)  # noqa: S311 - the same faults every time
    lock = threading.Lock()

    def choose(_: Request) -> Fault:
        with lock:
            return chance.choice(faults) if chance.random() < share else Fault.NONE

    return choose


@dataclass
class Proxy:
    """`choose` may be replaced while it runs; `met` counts what happened."""

    endpoint: str
    upstream: str
    choose: Choice = always
    met: Counter[Fault] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def decide(self, method: str, path: str) -> Fault:
        with self.lock:
            self.count += 1
            fault = self.choose(Request(method, path, self.count))
            self.met[fault] += 1
            return fault


@contextmanager
def fault_proxy(upstream: str, choose: Choice = always) -> Iterator[Proxy]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.proxy = Proxy(f"http://127.0.0.1:{server.server_address[1]}", urlsplit(upstream).netloc, choose)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.proxy
    finally:
        server.proxy.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    proxy: Proxy

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle_any(self) -> None:
        if "100-continue" in self.headers.get("Expect", ""):
            self.send_response_only(100)
            self.end_headers()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.proxy.decide(self.command, self.path)
        before = {
            Fault.ERROR: self.answer_error,
            Fault.REFUSED: self.answer_refused,
            Fault.RESET: self.reset,
            Fault.STALL: self.stall,
        }.get(fault)
        if before is not None:
            before()
            return
        if fault is Fault.CORRUPT_UP:
            body = _flipped(body)
        status, headers, answer = self.forward(body)
        if fault is Fault.LOST:
            self.reset()
        elif fault is Fault.TRAILER:
            self.answer(status, *_with_trailer(self.command, self.headers.get("Range", ""), status, headers, answer))
        elif fault is Fault.CUT and len(answer) > 1:
            self.answer(status, headers, answer, sent=len(answer) // 2)
            self.reset()
        else:
            self.answer(status, headers, _flipped(answer) if fault is Fault.CORRUPT_DOWN else answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815 - the names that http.server calls

    def forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.server.proxy.upstream, timeout=60)
        try:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in ("expect", "connection")}
            connection.request(self.command, self.path, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.getheaders(), reply.read()
        finally:
            connection.close()

    def answer(self, status: int, headers: list[tuple[str, str]], body: bytes, sent: int | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        length = {k.lower(): v for k, v in headers}.get("content-length", "0")
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:sent])
        self.wfile.flush()

    def answer_error(self) -> None:
        self.answer(503, [("Content-Type", "application/xml")], b"<Error><Code>SlowDown</Code></Error>")

    def answer_refused(self) -> None:
        self.answer(403, [("Content-Type", "application/xml")], b"<Error><Code>AccessDenied</Code></Error>")

    def reset(self) -> None:
        with suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        self.close_connection = True

    def stall(self) -> None:
        self.server.proxy.over.wait(60)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Quiet."""


def _flipped(data: bytes) -> bytes:
    if not data:
        return data
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def _with_trailer(
    method: str, wanted: str, status: int, headers: list[tuple[str, str]], body: bytes
) -> tuple[list[tuple[str, str]], bytes]:
    """As if the object ended with the trailer: its size grows, and a range that reaches the end gets it."""
    if status not in (200, 206) or method not in ("GET", "HEAD"):
        return headers, body
    if method == "HEAD":
        return [(k, str(int(v) + len(TRAILER)) if k.lower() == "content-length" else v) for k, v in headers], body
    if not wanted:
        return headers, body
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    room = int(last) - int(first) + 1 - len(body)
    return headers, body + TRAILER[: max(room, 0)]
