from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drtool.host.listeners import listeners, local_address, rows

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0000000000000000
   1: 0100007F:1F90 0100007F:A000 01 00000000:00000000 00:00000000 00000000     0        0 4243 1 0000000000000000
   2: 00000000000000000000000001000000:192B 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 77 1
"""


def test_listening_sockets_and_their_lines() -> None:
    assert list(rows(TABLE.splitlines())) == [(2, "127.0.0.1", 8080, "4242"), (4, "::1", 6443, "77")]


def test_the_holder_of_a_socket_is_named() -> None:
    if not os.path.exists("/proc/net/tcp"):  # noqa: PTH110
        pytest.skip("no /proc/net/tcp on this machine")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        [found] = [item for item in listeners() if item["port"] == port]
    assert (found["address"], found["pid"]) == ("127.0.0.1", os.getpid())


@given(st.text())
def test_any_text_is_an_address_or_a_value_error(text: str) -> None:
    try:
        address, port = local_address(text)
    except ValueError:
        return
    assert address
    assert isinstance(port, int)
