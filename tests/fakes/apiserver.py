"""An API server of a few paths over TLS: /readyz, and objects by their path with resourceVersion conflicts."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class FakeApiserver:
    """`objects` by path; `ready` is what /readyz says; the next `conflicts` writes find that someone was faster.

    `distrusts`: whoever shows a client certificate is refused, as one is whose certificate has run out.
    """

    server: str = ""
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    ready: bool = True
    distrusts: bool = False
    conflicts: int = 0
    patched: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def configmap(self, namespace: str, name: str, **data: str) -> dict[str, Any]:
        path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        self.objects[path] = {"metadata": {"name": name, "resourceVersion": "1"}, "data": data}
        return self.objects[path]


@contextmanager
def apiserver(certificate: Path, key: Path, ca: Path) -> Iterator[FakeApiserver]:
    """On a free port of loopback, asking for a client certificate of `ca`."""
    fake = FakeApiserver()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/readyz"):
                if fake.distrusts and self.connection.getpeercert():  # type: ignore[attr-defined]
                    return self._send(401, b"Unauthorized")
                body = b"ok" if fake.ready else b"[+]ping ok\n[-]etcd failed: reason withheld\n"
                return self._send(200 if fake.ready else 500, body)
            found = fake.objects.get(self.path)
            return self._send(200 if found else 404, json.dumps(found or {"message": "not found"}).encode())

        def do_PUT(self) -> None:
            sent = self._sent()
            version = fake.objects[self.path]["metadata"]["resourceVersion"]
            if fake.conflicts or sent["metadata"]["resourceVersion"] != version:
                fake.conflicts = max(0, fake.conflicts - 1)
                fake.objects[self.path]["metadata"]["resourceVersion"] = str(int(version) + 1)
                return self._send(409, b'{"message": "the object has been modified"}')
            sent["metadata"]["resourceVersion"] = str(int(version) + 1)
            fake.objects[self.path] = sent
            return self._send(200, json.dumps(sent).encode())

        def do_PATCH(self) -> None:
            fake.patched.append((self.path, self._sent()))
            self._send(200, b"{}")

        def _sent(self) -> dict[str, Any]:
            found: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            return found

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            return

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(ca)
    context.verify_mode = ssl.CERT_OPTIONAL
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        fake.server = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()
