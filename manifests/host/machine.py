"""How large the machine is, from the kernel's own files."""

from __future__ import annotations

import re

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from manifests.node import Node

CPUINFO, MEMINFO = "/proc/cpuinfo", "/proc/meminfo"


def cpus(node: Node) -> tuple[float, Evidence]:
    """Online processors, as /proc/cpuinfo lists them."""
    count = len(re.findall(r"^processor\s*:", node.text(CPUINFO), re.MULTILINE))
    if not count:
        raise EvidenceMissing(f"{CPUINFO} lists no processor")
    return float(count), Evidence(CPUINFO, None, f"{count} processors")


def memory(node: Node) -> tuple[float, Evidence]:
    """MemTotal in bytes."""
    found = node.find(MEMINFO, r"^MemTotal:\s*(\d+) kB")
    if not found:
        raise EvidenceMissing(f"{MEMINFO} is not in this tree" if not node.entry(MEMINFO).data else "no MemTotal")
    match, evidence = found[0]
    return float(match[1]) * 1024, evidence
