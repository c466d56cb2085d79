"""The addresses that the host has, from the kernel's own files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

from drtool.core.report import Evidence
from drtool.host.root import Entry

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Addresses:
    """Local addresses with the line that proves each. `own` leaves out loopback and link-local ones."""

    local: dict[Address, Evidence]

    def has(self, address: Address) -> bool:
        return address in self.local or address.is_loopback or address.is_unspecified

    @property
    def own(self) -> tuple[Address, ...]:
        return tuple(a for a in self.local if not a.is_loopback and not a.is_link_local)

    def evidence(self) -> tuple[Evidence, ...]:
        """What the host has, a line each, for a finding about what it lacks."""
        return tuple(self.local[address] for address in self.own[:4])


def read_addresses(fib_trie: Entry, if_inet6: Entry) -> Addresses:
    """`/32 host LOCAL` leaves of fib_trie (proc_pid_net(5)), and if_inet6's columns."""
    local: dict[Address, Evidence] = {}
    candidate: tuple[str, int] | None = None
    for number, line in enumerate(_lines(fib_trie), 1):
        if match := re.search(r"\|-- (\d+\.\d+\.\d+\.\d+)\s*$", line):
            candidate = (match[1], number)
        elif candidate and re.search(r"/32 host LOCAL\b", line):
            text, at = candidate
            local.setdefault(ip_address(text), Evidence(fib_trie.path, at, text))
    for number, line in enumerate(_lines(if_inet6), 1):
        fields = line.split()
        if len(fields) == 6 and re.fullmatch(r"[0-9a-f]{32}", fields[0]):
            address = IPv6Address(int(fields[0], 16))
            local.setdefault(address, Evidence(if_inet6.path, number, f"{address} {fields[5]}"))
    return Addresses(local)


def _lines(entry: Entry) -> list[str]:
    return (entry.data or b"").decode("ascii", "replace").splitlines()


def address_of(text: str) -> Address | None:
    """The address that a host part is, brackets and zone dropped; None for a name."""
    try:
        return ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
