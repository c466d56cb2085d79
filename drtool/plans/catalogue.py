"""Every kind of step by its class's name: what a plan read back from a journal may hold."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import getmembers, isclass
from types import MappingProxyType

import manifests.cluster_steps
import manifests.host_steps
import manifests.issuing_steps
import manifests.putting
import manifests.running
import manifests.steps
import snapshots.member_steps
import snapshots.steps

_MODULES = (
    manifests.host_steps,
    manifests.steps,
    manifests.running,
    manifests.putting,
    manifests.issuing_steps,
    manifests.cluster_steps,
    snapshots.steps,
    snapshots.member_steps,
)


def _steps() -> Mapping[str, type]:
    found = {
        name: value
        for module in _MODULES
        for name, value in getmembers(module, isclass)
        if value.__module__ == module.__name__ and hasattr(value, "apply") and hasattr(value, "revert")
    }
    return MappingProxyType(found)


STEPS = _steps()
