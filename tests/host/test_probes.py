"""Probes against real sockets: what answers, what refuses, what hangs and what drips."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drtool.host.probes import Target, probe, probe_all
from manifests.pki.issuing import Issued, issue, issue_authority, new_key

PATIENT = 20.0


class Component(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        client = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        wants = self.path.startswith("/private")
        body = b"[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
        self.send_response(401 if wants and not client else 500 if self.path.startswith("/readyz") else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"got " + body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        return


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Component)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def silent() -> Iterator[int]:
    """Accepts into its backlog and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield listener.getsockname()[1]


@contextmanager
def dripping() -> Iterator[int]:
    """Sends a byte now and then, forever."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        stop = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection:
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            stop.set()
            thread.join()


@pytest.fixture(scope="module")
def authority() -> Issued:
    return issue_authority("etcd-ca", datetime.now(UTC), new_key("ECDSA-P256"))


@pytest.fixture
def pair(authority: Issued, tmp_path: Path) -> tuple[Path, Path]:
    usages = ("serverAuth", "clientAuth")
    issued = issue(authority, "cp-1", usages, datetime.now(UTC), new_key("ECDSA-P256"), (), ("127.0.0.1",))
    files = tmp_path / "pair.crt", tmp_path / "pair.key"
    files[0].write_bytes(issued.certificate_pem)
    files[1].write_bytes(issued.key_pem)
    return files


def server_context(pair: tuple[Path, Path], ca: Issued, verify: ssl.VerifyMode) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    context.load_verify_locations(cadata=ca.certificate_pem.decode())
    context.verify_mode = verify
    return context


def test_a_plain_answer_carries_status_and_body() -> None:
    with serving() as port:
        answer = probe(Target("kubelet", "127.0.0.1", port, False, "/healthz?verbose"), PATIENT)
        assert (answer.status, answer.error) == (200, "")
        assert b"[+]ping ok" in answer.body
        assert probe(Target("etcd", "127.0.0.1", port, False, "/readyz"), PATIENT).status == 500


def test_a_body_is_posted() -> None:
    with serving() as port:
        assert probe(Target("etcd", "127.0.0.1", port, False, "/v3/x", body=b"{}"), PATIENT).body == b"got {}"


def test_the_served_certificate_is_kept(pair: tuple[Path, Path], authority: Issued) -> None:
    with serving(server_context(pair, authority, ssl.CERT_NONE)) as port:
        answer = probe(Target("kube-apiserver", "127.0.0.1", port, path="/livez"), PATIENT)
        bare = probe(Target("etcd", "127.0.0.1", port), PATIENT)
    served = ssl.PEM_cert_to_DER_cert(pair[0].read_text())
    assert (answer.status, answer.certificate) == (200, served)
    assert (bare.status, bare.certificate, bare.error) == (None, served, "")


def test_a_guest_shows_its_certificate_only_where_it_is_asked_for(pair: tuple[Path, Path], authority: Issued) -> None:
    with serving(server_context(pair, authority, ssl.CERT_OPTIONAL)) as port:
        stranger = Target("kube-apiserver", "127.0.0.1", port, path="/private")
        assert probe(stranger, PATIENT).status == 401
        guest = Target("kube-apiserver", "127.0.0.1", port, path="/private", client=pair, guest=True)
        assert probe(guest, PATIENT).status == 200


def test_what_is_wrong_is_said_in_words(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert probe(Target("etcd", "127.0.0.1", port), PATIENT).error == "Connection refused"
    with serving() as port:
        assert probe(Target("etcd", "127.0.0.1", port, path="/health"), PATIENT).error.startswith("TLS: ")
        missing = (tmp_path / "absent.crt", tmp_path / "absent.key")
        assert probe(Target("etcd", "127.0.0.1", port, client=missing), PATIENT).error


def test_an_endpoint_that_hangs_or_drips_does_not_hold_the_others() -> None:
    with serving() as good, silent() as mute, dripping() as slow:
        targets = [
            Target("etcd", "127.0.0.1", mute, False, "/health"),
            Target("kube-apiserver", "127.0.0.1", mute, path="/livez"),
            Target("kube-scheduler", "127.0.0.1", slow, False, "/livez"),
            Target("kubelet", "127.0.0.1", good, False, "/healthz"),
        ]
        answers = probe_all(targets, seconds=0.5, overall=3.0)
    assert [answer.target for answer in answers] == targets
    assert [answer.status for answer in answers] == [None, None, None, 200]
    assert {answer.error for answer in answers[:3]} == {"timed out"}


def test_an_address_of_ipv6_is_bracketed_in_the_url() -> None:
    assert Target("etcd", "::1", 2379, path="/health").url == "https://[::1]:2379/health"
    assert Target("etcd", "127.0.0.1", 2380).url == "tls://127.0.0.1:2380"
