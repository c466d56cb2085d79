"""Listening TCP sockets from the kernel's table (proc_pid_net(5)): /proc/net/tcp and tcp6."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from drtool.host.root import Entry
from manifests.live import Listener

LISTEN = "0A"


def listening(*tables: Entry) -> tuple[Listener, ...]:
    """EvidenceMissing where the tree holds none of the tables. The table names no program: `command` is ""."""
    if all(table.data is None for table in tables):
        raise EvidenceMissing(f"{tables[0].path}: {tables[0].error or 'not a file'}")
    return tuple(found for table in tables for found in _listeners(table))


def _listeners(table: Entry) -> Iterator[Listener]:
    lines = (table.data or b"").decode("ascii", "replace").splitlines()
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) < 4 or fields[3] != LISTEN:
            continue
        try:
            address, port = local_address(fields[1])
        except ValueError:
            continue
        yield Listener(address, port, None, "", Evidence(table.path, number, f"{address} port {port} listens"))


def local_address(text: str) -> tuple[str, int]:
    """`0100007F:1F90` as ("127.0.0.1", 8080): words of four bytes in the machine's (little-endian) order."""
    host, _, port = text.partition(":")
    words = bytes.fromhex(host)
    packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    if len(packed) not in (4, 16):
        raise ValueError(text)
    address = IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed)
    return str(address), int(port, 16)
