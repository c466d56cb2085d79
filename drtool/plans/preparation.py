"""What a host lacks before kubeadm makes a node of it, put right: each thing now, and kept over a reboot."""

from __future__ import annotations

import re

from drtool.core.check import EvidenceMissing
from drtool.plans.site import Draft, NodeStep
from manifests.editing import Change
from manifests.host.mounts import fstab
from manifests.node import Node
from manifests.steps.files import edit_file
from manifests.steps.host import CreateFile, LoadModule, SetKernelValue, TurnSwapOff

SYSCTL, MODULES = "/etc/sysctl.d/99-drtool.conf", "/etc/modules-load.d/drtool.conf"
FORWARD = "net.ipv4.ip_forward"


def preparation(node: Node, failed: frozenset[str]) -> Draft:
    """`failed` are the ids of the preflight items that found something; only what has one right answer is put right."""
    steps = (*_swap(node, failed), *_forwarding(node, failed), *_modules(failed))
    return Draft("preflight", "prepare this host for kubeadm", steps)


def _swap(node: Node, failed: frozenset[str]) -> tuple[NodeStep, ...]:
    now: tuple[NodeStep, ...] = ()
    if "swap-now" in failed:
        now = tuple(TurnSwapOff(match[1]) for match, _ in node.find("/proc/swaps", r"^(/\S+)\s+\w+\s+\d+"))
    return (*now, *(_fstab(node) if "swap-at-boot" in failed else ()))


def _fstab(node: Node) -> tuple[NodeStep, ...]:
    """Each line of swap becomes a comment; nothing else of the file changes."""
    data = node.data("/etc/fstab")
    numbers = {line.evidence.line for line in fstab(node) if line.kind == "swap" and "noauto" not in line.options}
    changes, offset = [], 0
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        if number in numbers:
            text = line.decode("utf-8", "surrogateescape")
            changes.append(Change(offset, text, f"# {text}"))
        offset += len(line)
    return edit_file("/etc/fstab", data, tuple(changes))


def _forwarding(node: Node, failed: frozenset[str]) -> tuple[NodeStep, ...]:
    if "forwarding-off" not in failed:
        return ()
    try:
        value, _ = node.sysctl(FORWARD)
    except EvidenceMissing:
        value = ""
    now = (SetKernelValue(FORWARD, value, "1"),) if value and value != "1" else ()
    kept = () if _sets(node, SYSCTL, FORWARD) else (CreateFile(SYSCTL, f"{FORWARD} = 1\n"),)
    return (*now, *kept)


def _modules(failed: frozenset[str]) -> tuple[NodeStep, ...]:
    if "kernel-modules-missing" not in failed:
        return ()
    return (LoadModule("br_netfilter"), CreateFile(MODULES, "br_netfilter\n"))


def _sets(node: Node, path: str, name: str) -> bool:
    return bool(node.find(path, rf"^\s*{re.escape(name)}\s*=\s*1"))
