"""CRI-O's configuration, and whether it is the runtime that the kubelet talks to."""

from __future__ import annotations

import tomllib
from typing import Any

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence
from manifests.capture import CONTAINERD
from manifests.node import Node

MAIN = "/etc/crio/crio.conf"


def in_use(node: Node) -> bool:
    """By the kubelet's endpoint; without one, where CRI-O is the only runtime with a configuration."""
    endpoint, _ = node.kubelet.setting("container-runtime-endpoint", "containerRuntimeEndpoint", default="")
    if endpoint:
        return "crio" in str(endpoint)
    return bool(files(node)) and node.entry(CONTAINERD).data is None


def files(node: Node) -> tuple[str, ...]:
    """crio.conf, then every file of crio.conf.d in the order of their names, whatever their suffix (UpdateFromPath)."""
    entries = (node.entry(MAIN), *node.capture.matching(r"/etc/crio/crio\.conf\.d/.+"))
    return tuple(entry.path for entry in entries if entry.data is not None)


def setting(node: Node, table: str, key: str, kind: type = str) -> tuple[Any, Evidence] | None:
    """[crio.TABLE] KEY of the last file that has it as a `kind`, with its line; None where the default counts.

    EvidenceMissing where a file cannot be parsed: CRI-O does not start with it.
    """
    found = None
    for path in files(node):
        try:
            value: Any = tomllib.loads(node.text(path))
        except (tomllib.TOMLDecodeError, RecursionError) as wrong:
            raise EvidenceMissing(f"{path}: {wrong}") from wrong
        for name in ("crio", table, key):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, kind):
            lines = node.find(path, rf"^[^#]*\b{key}\b[\"']?\s*=")
            found = value, lines[-1][1] if lines else Evidence(path)
    return found
