"""keepalived.conf: instances with their virtual addresses, and the scripts that they track (keepalived.conf(5))."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from drtool.core.report import Evidence
from manifests.network.addresses import Address, address_of
from manifests.network.vip import KEEPALIVED
from manifests.node import Node


@dataclass(frozen=True, slots=True)
class Virtual:
    """A virtual address. `prefix` is None where none is written: keepalived then takes /32 (/128)."""

    address: Address
    prefix: int | None
    evidence: Evidence


@dataclass(slots=True)
class Block:
    """One `{ ... }` of the file. `words` are those before the brace, `lines` its own lines."""

    words: list[str]
    evidence: Evidence
    lines: list[tuple[str, Evidence]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    def value(self, key: str) -> tuple[str, Evidence] | None:
        for text, evidence in self.lines:
            name, _, rest = text.partition(" ")
            if name == key:
                return rest.strip().strip("\"'"), evidence
        return None

    def all(self, kind: str) -> Iterator[Block]:
        for block in self.blocks:
            if block.words and block.words[0] == kind:
                yield block
            yield from block.all(kind)


def configuration(node: Node) -> Block:
    """The file as nested blocks; an empty one where there is no such file."""
    root = Block([], Evidence(KEEPALIVED))
    stack = [root]
    for match, evidence in node.find(KEEPALIVED, r"^([^#!]*)"):
        for part in re.findall(r"[^{}]+|[{}]", match[1]):
            text = " ".join(part.split())
            if part == "{":
                words = stack[-1].lines.pop()[0].split() if stack[-1].lines else []
                block = Block(words, evidence)
                stack[-1].blocks.append(block)
                stack.append(block)
            elif part == "}":
                if len(stack) > 1:
                    stack.pop()
            elif text:
                stack[-1].lines.append((text, evidence))
    return root


def virtuals(node: Node) -> Iterator[Virtual]:
    for kind in ("virtual_ipaddress", "virtual_ipaddress_excluded"):
        for block in configuration(node).all(kind):
            for text, evidence in block.lines:
                host, _, prefix = text.split()[0].partition("/")
                address = address_of(host)
                if address is not None:
                    yield Virtual(address, int(prefix) if prefix.isdecimal() else None, evidence)
