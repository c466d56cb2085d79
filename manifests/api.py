"""A few calls of the Kubernetes API, with a kubeconfig's own credentials: health, and objects as JSON."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from drtool.core.errors import DrtoolError
from drtool.host.machine import Host
from manifests.document import parse
from manifests.kubeconfig import split_url

TIMEOUT = 10.0
ADMINS = ("/etc/kubernetes/super-admin.conf", "/etc/kubernetes/admin.conf")
LARGEST = 64 << 20


class ApiSilent(DrtoolError):
    """No API server answered there, or its certificate was not accepted."""


class ApiRefused(DrtoolError):
    """The API server answered with an error; `status` is HTTP's."""

    def __init__(self, what: str, status: int, hint: str = "") -> None:
        super().__init__(what, hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Identity:
    """PEM texts: the CA to trust, and what to prove oneself with."""

    ca: bytes
    certificate: bytes
    key: bytes


def identity(host: Host, path: str = "") -> Identity:
    """The credentials of a kubeconfig on the node; without `path`, of the strongest one there is."""
    path = path or next((admin for admin in ADMINS if host.exists(admin)), ADMINS[-1])
    document = parse(path, host.read(path))[0]

    def pem(place: tuple[str | int, ...], name: str) -> bytes:
        embedded = document.get(*place, f"{name}-data")
        named = document.get(*place, name)
        return base64.b64decode(embedded) if embedded else host.read(str(named)) if named else b""

    return Identity(
        pem(("clusters", 0, "cluster"), "certificate-authority"),
        pem(("users", 0, "user"), "client-certificate"),
        pem(("users", 0, "user"), "client-key"),
    )


@dataclass(frozen=True, slots=True)
class Api:
    """One API server at HOST:PORT, whose certificate must be valid for that very host."""

    server: str
    identity: Identity

    def ready(self) -> str:
        """ "" where /readyz says ok; else what it says, or why it does not answer."""
        try:
            status, body = self._send("GET", "/readyz?verbose")
            if status in (401, 403) and self.identity.certificate:  # ours has run out; anybody may ask for this
                status, body = Api(self.server, Identity(self.identity.ca, b"", b""))._send("GET", "/readyz?verbose")
        except ApiSilent as silent:
            return silent.what
        failed = [line for line in body.decode("utf-8", "replace").splitlines() if line.startswith("[-]")]
        return "" if status == 200 else f"/readyz answers {status}: {'; '.join(failed[:3])}"

    def get(self, path: str) -> dict[str, Any] | None:
        """An object or a list; None where there is none of that name."""
        return self._json("GET", path)

    def put(self, path: str, value: dict[str, Any]) -> dict[str, Any] | None:
        return self._json("PUT", path, value)

    def merge(self, path: str, value: dict[str, Any]) -> dict[str, Any] | None:
        """A JSON merge patch (RFC 7386); None where there is no such object."""
        return self._json("PATCH", path, value, "application/merge-patch+json")

    def apply(self, path: str, value: dict[str, Any]) -> dict[str, Any] | None:
        """Server-side apply: creates the object where there is none."""
        return self._json("PATCH", f"{path}?fieldManager=drtool", value, "application/apply-patch+yaml")

    def delete(self, path: str) -> None:
        self._json("DELETE", path)

    def _json(
        self, method: str, path: str, value: dict[str, Any] | None = None, kind: str = "application/json"
    ) -> dict[str, Any] | None:
        status, body = self._send(method, path, None if value is None else json.dumps(value).encode(), kind)
        if status == 404:
            return None
        if status >= 300:
            raise ApiRefused(f"{method} {path} at {self.server}: {status} {_message(body)}", status)
        found: dict[str, Any] = json.loads(body)
        return found

    def _send(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> tuple[int, bytes]:
        address, port = split_url(f"https://{self.server}")
        connection = http.client.HTTPSConnection(address, port, timeout=TIMEOUT, context=_context(self.identity))
        try:
            headers = {"Accept": "application/json", **({"Content-Type": kind} if body is not None else {})}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read(LARGEST)
        except (OSError, http.client.HTTPException) as failed:
            raise ApiSilent(f"the API server at {self.server} does not answer: {failed}") from failed
        finally:
            connection.close()


def serves(server: str, name: str, ca: bytes) -> str:
    """Empty where the server's certificate is signed by `ca` and valid for `name` (any, if ""); else what is wrong."""
    context = ssl.create_default_context(cadata=ca.decode())
    context.check_hostname = bool(name)
    try:
        with (
            socket.create_connection(split_url(f"https://{server}"), TIMEOUT) as plain,
            context.wrap_socket(plain, server_hostname=name or None),
        ):
            return ""
    except (OSError, ssl.SSLError) as failed:
        return str(failed)


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body).get("message", ""))
    except (ValueError, AttributeError):
        return body[:200].decode("utf-8", "replace")


def _context(identity: Identity) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=identity.ca.decode())
    if identity.certificate:
        with _in_memory(identity.certificate + b"\n" + identity.key) as path:
            context.load_cert_chain(path)
    return context


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """OpenSSL takes keys from files only; this one is in memory and has no name on any disk."""
    descriptor = os.memfd_create("credentials", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, data)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
