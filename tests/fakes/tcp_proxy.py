"""A TCP proxy whose server-to-client side can be held, cut, or damaged after so many bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class TcpProxy:
    """`after` is how many bytes pass to the client before `then` ("hold", "cut", "flip") happens."""

    address: tuple[str, int]
    upstream: tuple[str, int]
    after: int = 1 << 62
    then: str = "hold"
    passed: int = 0
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def tcp_proxy(url: str, after: int, then: str) -> Iterator[TcpProxy]:
    there = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        proxy = TcpProxy(listener.getsockname(), (there.hostname or "", there.port or 0), after, then)
        thread = threading.Thread(target=_accept, args=(listener, proxy), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.over.set()
            thread.join()


def _accept(listener: socket.socket, proxy: TcpProxy) -> None:
    threads = []
    while not proxy.over.is_set():
        try:
            client, _ = listener.accept()
        except TimeoutError:
            continue
        server = socket.create_connection(proxy.upstream)
        for source, target, down in ((client, server, False), (server, client, True)):
            thread = threading.Thread(target=_pump, args=(proxy, source, target, down), daemon=True)
            thread.start()
            threads.append(thread)
    for thread in threads:
        thread.join()


def _pump(proxy: TcpProxy, source: socket.socket, target: socket.socket, down: bool) -> None:
    source.settimeout(0.1)
    with source:
        while not proxy.over.is_set():
            try:
                data = source.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                break
            if not data:
                break
            if down:
                proxy.passed += len(data)
                if proxy.passed > proxy.after and proxy.then == "hold":
                    proxy.over.wait(60)
                    break
                if proxy.passed > proxy.after and proxy.then == "cut":
                    break
                if proxy.passed > proxy.after and proxy.then == "flip":
                    data = data[:-100] + bytes([data[-100] ^ 1]) + data[-99:] if len(data) > 200 else data
                    proxy.after = 1 << 62
            with suppress(OSError):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
