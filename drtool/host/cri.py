"""The container runtime over its socket: as much of the CRI (runtime.v1) as stopping and proving need.

gRPC is HTTP/2 frames (RFC 9113) with one length-prefixed message each way. One call on one connection needs six kinds
of frame and no header compression of our own, so this talks to the socket directly: drtool loads no gRPC library to
look at a node. A unary call that succeeds always carries a message, even an empty one; without it the call failed.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drtool.core.errors import DrtoolError
from drtool.host.machine import Container

SOCKETS = ("/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock")
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS, PADDED = 0x1, 0x1, 0x4, 0x8
WINDOW = (1 << 31) - 1
RUNNING = 1
LARGEST = 64 << 20


class RuntimeSilent(DrtoolError):
    """The runtime's socket is missing, refuses, or does not answer a call."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runtime behind one socket; implements host.machine.Containers."""

    path: Path
    timeout: float = 10.0

    def all(self) -> tuple[Container, ...]:
        reply = self._call("ListContainers", b"", self.timeout)
        return tuple(_container(value) for number, value in fields(reply) if number == 1 and isinstance(value, bytes))

    def stop(self, container: str, grace: int) -> None:
        """SIGTERM, after `grace` seconds SIGKILL; returns once it is down. One that is gone is no error."""
        request = _bytes(1, container.encode()) + _varint(2 << 3) + _varint(grace)
        try:
            self._call("StopContainer", request, grace + self.timeout)
        except RuntimeSilent:
            if any(found.id == container and found.running for found in self.all()):
                raise

    def version(self) -> tuple[str, str]:
        """Name and version of the runtime."""
        reply = {n: v for n, v in fields(self._call("Version", b"", self.timeout)) if isinstance(v, bytes)}
        return reply.get(2, b"").decode("utf-8", "replace"), reply.get(3, b"").decode("utf-8", "replace")

    def _call(self, method: str, message: bytes, timeout: float) -> bytes:
        return ask(self.path, f"RuntimeService/{method}", message, timeout)


def ask(path: Path, method: str, message: bytes, timeout: float) -> bytes:
    """The reply to one unary call ("ImageService/ListImages") to the runtime at `path`. Raises RuntimeSilent."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(str(path))
            connection.sendall(_request(f"/runtime.v1.{method}", message))
            return _reply(connection)
        except (OSError, _Failed) as failed:
            raise RuntimeSilent(
                f"the container runtime at {path} does not answer {method.rpartition('/')[2]}: {failed}",
                "systemctl status containerd (or crio); without it nothing can be proved stopped",
            ) from failed


class _Failed(Exception):
    pass


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _request(path: str, message: bytes) -> bytes:
    """Everything the client has to say, in one go: RFC 9113 lets it not wait for the server's settings."""
    names = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    # literal header fields without indexing (RFC 7541, 6.2.2): 0, then two length-prefixed texts shorter than 127
    headers = b"".join(b"\x00" + _text(name) + _text(value) for name, value in names.items())
    body = b"\x00" + struct.pack(">I", len(message)) + message
    settings = struct.pack(">HIHI", 1, 0, 4, WINDOW)  # no header table; a whole reply without flow control
    return b"".join(
        (
            PREFACE,
            _frame(SETTINGS, 0, 0, settings),
            _frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - 65535)),
            _frame(HEADERS, END_HEADERS, 1, headers),
            _frame(DATA, END_STREAM, 1, body),
        )
    )


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def _reply(connection: socket.socket) -> bytes:
    body = bytearray()
    while True:
        size, kind, flags, stream = _head(_exactly(connection, 9))
        payload = _exactly(connection, size)
        if kind == SETTINGS and not flags & ACK:
            connection.sendall(_frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            connection.sendall(_frame(PING, ACK, 0, payload))
        elif kind in (RST_STREAM, GOAWAY):
            raise _Failed("it ended the call")
        elif kind == DATA and stream == 1:
            body += payload[1 : len(payload) - payload[0]] if flags & PADDED else payload
            if len(body) > LARGEST:
                raise _Failed("its answer is too large")
        if kind in (DATA, HEADERS) and stream == 1 and flags & END_STREAM:
            return _message(bytes(body))


def _head(data: bytes) -> tuple[int, int, int, int]:
    kind, flags, stream = struct.unpack(">BBI", data[3:])
    return int.from_bytes(data[:3]), kind, flags, stream & WINDOW


def _message(body: bytes) -> bytes:
    if len(body) < 5 or body[0] or len(body) != 5 + int.from_bytes(body[1:5]):
        raise _Failed("it refused the call")
    return body[5:]


def _exactly(connection: socket.socket, size: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        piece = connection.recv(size - len(pieces))
        if not piece:
            raise _Failed("it closed the connection")
        pieces += piece
    return bytes(pieces)


def _container(data: bytes) -> Container:
    """runtime.v1.Container: 1 id, 3 metadata, 6 state, 7 created_at in ns, 8 labels."""
    identity, state, created, labels = "", 0, 0, {}
    for number, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            identity = value.decode()
        elif number == 6 and isinstance(value, int):
            state = value
        elif number == 7 and isinstance(value, int):
            created = value
        elif number == 8 and isinstance(value, bytes):
            pair = {n: v.decode("utf-8", "replace") for n, v in fields(value) if isinstance(v, bytes)}
            labels[pair.get(1, "")] = pair.get(2, "")
    name, pod = labels.get("io.kubernetes.container.name", ""), labels.get("io.kubernetes.pod.name", "")
    return Container(identity, name, pod, state == RUNNING, created / 1e9)


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Protobuf fields of wire types 0, 1, 2 and 5; ends early where the message does."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        match tag & 7:
            case 0:
                value, at = _read_varint(data, at)
                yield tag >> 3, value
                continue
            case 2:
                size, at = _read_varint(data, at)
            case 1:
                size = 8
            case 5:
                size = 4
            case _:
                return
        yield tag >> 3, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            break
    return value, at


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data
