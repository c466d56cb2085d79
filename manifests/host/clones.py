"""What each machine of a cluster must have for itself: hostname, machine id, product id, hardware addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drtool.core.report import Evidence, Finding
from manifests.node import Node

ETHERNET = "00:00:00:00:00:00"
WORDS = {"/etc/machine-id": "machine id", "/sys/class/dmi/id/product_uuid": "product id"}


def compare(nodes: Sequence[Node]) -> Iterator[Finding]:
    """One finding for each thing that two nodes share and should not."""
    seen: dict[tuple[str, str], tuple[str, Evidence]] = {}
    for node in nodes:
        for what, value, evidence in _identity(node):
            other, at = seen.setdefault((what, value), (node.name, evidence))
            if at is not evidence:
                yield Finding(f"{other} and {node.name} have the same {what}: {value}", (at, evidence))


def _identity(node: Node) -> Iterator[tuple[str, str, Evidence]]:
    if node.hostname:
        yield "hostname", node.hostname.lower(), Evidence("/etc/hostname", 1, node.hostname)
    for path, what in WORDS.items():
        entry = node.entry(path)
        text = (entry.data or b"").decode("ascii", "replace").strip().lower()
        if text and text != "uninitialized":
            yield what, text, Evidence(path, 1, text)
    for entry in node.capture.matching(r"/sys/class/net/(?!lo/|veth|cni|docker|br-|virbr|cali|flannel)[^/]+/address"):
        text = (entry.data or b"").decode("ascii", "replace").strip().lower()
        if text and text != ETHERNET and not int(text[:2], 16) & 2:  # locally administered ones are made up
            yield "hardware address", text, Evidence(entry.path, 1, text)
