"""The state files of the CPU and memory managers must fit the configured policies.

After a policy was changed the kubelet exits with `configured policy "static" differs from state checkpoint policy
"none"`; after a machine lost processors, with `current set of available CPUs doesn't match with CPUs in state`. An
absent file is fine.

Fix: drain the node, remove /var/lib/kubelet/cpu_manager_state (or memory_manager_state), restart the kubelet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.host.machine import cpus
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("kubelet-not-running", "container-exited", "component-not-ready")
MANAGERS = (
    ("CPU", "/var/lib/kubelet/cpu_manager_state", "cpu-manager-policy", "cpuManagerPolicy", "none"),
    ("memory", "/var/lib/kubelet/memory_manager_state", "memory-manager-policy", "memoryManagerPolicy", "None"),
)


def find(node: Node) -> Iterator[Finding]:
    for what, path, flag, key, default in MANAGERS:
        state = _state(node, path)
        if state is None:
            continue
        policy, evidence = node.kubelet.setting(flag, key, default=default)
        kept = str(state.get("policyName", ""))
        at = Evidence(path, 1, f"policyName {kept}")
        if kept and kept != str(policy):
            yield Finding(f"The {what} manager's policy is {policy}, and its state file says {kept}", (evidence, at))
        elif what == "CPU" and kept == "static":
            yield from _processors(node, state, path)


def _state(node: Node, path: str) -> dict[str, Any] | None:
    """The checkpoint; newer kubelets wrap it as text in `data`."""
    entry = node.entry(path)
    if entry.data is None:
        return None
    try:
        state = json.loads(entry.data)
        if isinstance(state, dict) and isinstance(state.get("data"), str):
            state = json.loads(state["data"])
    except ValueError as problem:
        raise EvidenceMissing(f"{path}: {problem}") from problem
    return state if isinstance(state, dict) else None


def _processors(node: Node, state: dict[str, Any], path: str) -> Iterator[Finding]:
    online, evidence = cpus(node)
    used = _set(str(state.get("defaultCpuSet", "")))
    for containers in (state.get("entries") or {}).values():
        for text in containers.values() if isinstance(containers, dict) else ():
            used |= _set(str(text))
    beyond = sorted(cpu for cpu in used if cpu >= online)
    if beyond:
        yield Finding(
            f"The CPU manager's state names CPU {beyond[0]}, and the host has {online:.0f}",
            (Evidence(path, 1, f"defaultCpuSet {state.get('defaultCpuSet')}"), evidence),
        )


def _set(text: str) -> set[int]:
    """`0-2,7` as numbers."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first), int(first) + 4096) + 1))
    return found
