"""A container runtime on a Unix socket: as much HTTP/2 as a unary gRPC call sees, with canned replies."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def reply(message: bytes | None) -> bytes:
    """The frames of an answer; None for a call that fails, which carries trailers only."""
    head = frame(SETTINGS, 0, 0) + frame(PING, 0, 0, b"12345678") + frame(SETTINGS, 1, 0)
    if message is None:
        return head + frame(HEADERS, 0x5, 1, b"\x88")
    body = b"\x00" + struct.pack(">I", len(message)) + message
    pieces = b"".join(frame(DATA, 0, 1, body[at : at + 1000]) for at in range(0, len(body), 1000))
    return head + frame(HEADERS, 0x4, 1, b"\x88") + pieces + frame(HEADERS, 0x5, 1, b"\x88")


def field(number: int, value: int | str | bytes) -> bytes:
    """One protobuf field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@contextmanager
def runtime(path: Path, replies: Mapping[str, bytes | None], silent: bool = False) -> Iterator[None]:
    """Answers by method ("ListContainers"); a method it does not know fails."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(20)
                    asked = connection.recv(1 << 16)
                    if silent:
                        over.wait()
                        continue
                    method = next((name for name in replies if f"/{name}".encode() in asked), "")
                    connection.sendall(reply(replies.get(method)))
                    while connection.recv(1 << 16):
                        continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
