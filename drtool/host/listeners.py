"""Listening TCP sockets of this network namespace, and the programs that hold them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

LISTEN = "0A"


def listeners(proc: Path = Path("/proc")) -> tuple[dict[str, str | int | None], ...]:
    """`{"address", "port", "pid", "command"}`; pid None and command "" where the holder may not be seen (not root)."""
    found = [row for name in ("tcp", "tcp6") for row in rows(_text(proc / "net" / name).splitlines())]
    holders = _holders(proc, {inode for _, _, _, inode in found})
    return tuple(
        {"address": address, "port": port, **holders.get(inode, {"pid": None, "command": ""})}
        for _, address, port, inode in found
    )


def rows(lines: Iterable[str]) -> Iterator[tuple[int, str, int, str]]:
    """Line number, address, port and inode of each listening socket in /proc/net/tcp or tcp6 (proc_pid_net(5))."""
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if len(fields) < 10 or fields[3] != LISTEN:
            continue
        try:
            address, port = local_address(fields[1])
        except ValueError:
            continue
        yield number, address, port, fields[9]


def local_address(text: str) -> tuple[str, int]:
    """`0100007F:1F90` as ("127.0.0.1", 8080): words of four bytes in the machine's (little-endian) order."""
    host, _, port = text.partition(":")
    words = bytes.fromhex(host)
    packed = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4))
    if len(packed) not in (4, 16):
        raise ValueError(text)
    address = IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed)
    return str(address), int(port, 16)


def _holders(proc: Path, inodes: set[str]) -> dict[str, dict[str, str | int | None]]:
    """The first process, by id, that has each socket open."""
    found: dict[str, dict[str, str | int | None]] = {}
    for process in sorted(int(name) for name in os.listdir(proc) if name.isdecimal()):  # noqa: PTH208 - names
        for link in _links(proc / str(process) / "fd"):
            inode = link[8:-1] if link.startswith("socket:[") else ""
            if inode in inodes and inode not in found:
                found[inode] = {"pid": process, "command": _text(proc / str(process) / "comm").strip()}
    return found


def _links(directory: Path) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    yield os.readlink(entry.path)  # noqa: PTH115 - a link to no path
                except OSError:
                    continue
    except OSError:
        return


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
