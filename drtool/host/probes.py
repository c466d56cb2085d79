"""Asks the endpoints of a node's components: TCP, TLS with the certificate that is served, HTTP.

Each probe has its own time limit and all together another, so that an endpoint which accepts and never answers, or
answers a byte a second, cannot hold the run. Certificates are looked at, never trusted: what is served is the question.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from drtool.host.patience import together

SECONDS, OVERALL = 3.0, 6.0
LARGEST = 256 << 10


@dataclass(frozen=True, slots=True)
class Target:
    """What to ask. Without a `path` the probe ends after the handshake; with a `body` it is a POST.

    `client` are the files of a certificate and its key, to show where the server asks for one. `guest` asks without it
    first, as the kubelet does, and shows it only to a server that answers 401 or 403.
    """

    component: str
    host: str
    port: int
    tls: bool = True
    path: str = ""
    client: tuple[Path, Path] | None = None
    guest: bool = False
    body: bytes | None = None

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = ("https" if self.tls else "http") if self.path else ("tls" if self.tls else "tcp")
        return f"{scheme}://{host}:{self.port}{self.path}"


@dataclass(frozen=True, slots=True)
class Answer:
    """`status` is None where there was no HTTP answer; `error` then says why. `certificate` is DER as served.

    `seconds` are those from the request to the end of its answer, without the handshake.
    """

    target: Target
    status: int | None = None
    body: bytes = field(default=b"", repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    error: str = ""
    seconds: float = field(default=0.0, compare=False)


def probe_all(targets: Sequence[Target], seconds: float = SECONDS, overall: float = OVERALL) -> tuple[Answer, ...]:
    """An answer to each target, in its order, after at most `overall` seconds."""
    unique = tuple(dict.fromkeys(targets))
    answers = together({target: partial(probe, target, seconds) for target in unique}, overall)
    found = []
    for target in unique:
        answer = answers.get(target, TimeoutError())
        found.append(Answer(target, error=_words(answer)) if isinstance(answer, Exception) else answer)
    return tuple(found)


def probe(target: Target, seconds: float = SECONDS) -> Answer:
    """Never raises for what the network or the server does."""
    answer = _ask(target, None if target.guest else target.client, seconds)
    if target.guest and target.client and answer.status in (401, 403):
        return _ask(target, target.client, seconds)
    return answer


def _ask(target: Target, client: tuple[Path, Path] | None, seconds: float) -> Answer:
    certificate: bytes | None = None
    try:
        with socket.create_connection((target.host, target.port), timeout=seconds) as plain:
            if not target.tls:
                return _talk(target, plain, None)
            with _context(client).wrap_socket(plain, server_hostname=_server_name(target.host)) as secure:
                certificate = secure.getpeercert(binary_form=True)
                return _talk(target, secure, certificate)
    except (OSError, ValueError, http.client.HTTPException) as failed:
        return Answer(target, certificate=certificate, error=_words(failed))


def _context(client: tuple[Path, Path] | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if client is not None:
        context.load_cert_chain(*client, password=lambda: b"")  # an encrypted key must not ask on the terminal
    return context


def _server_name(host: str) -> str | None:
    """Go's clients send a name only; an address selects no certificate."""
    return None if ":" in host or host.replace(".", "").isdecimal() else host


def _talk(target: Target, connection: socket.socket, certificate: bytes | None) -> Answer:
    if not target.path:
        return Answer(target, certificate=certificate)
    http_connection = http.client.HTTPConnection(target.host, target.port)
    http_connection.sock = connection
    method = "POST" if target.body is not None else "GET"
    began = time.monotonic()
    http_connection.request(method, target.path, target.body, {"Connection": "close", "User-Agent": "drtool"})
    response = http_connection.getresponse()
    body = response.read(LARGEST)
    return Answer(target, response.status, body, certificate, seconds=time.monotonic() - began)


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timed out"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
