"""Every kind of step by its class's name: what a plan read back from a journal may hold."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import getmembers, isclass
from types import MappingProxyType, ModuleType

import manifests.steps
import snapshots.steps


def _modules() -> Iterator[ModuleType]:
    for package in (manifests.steps, snapshots.steps):
        for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            yield import_module(found.name)


def _steps() -> Mapping[str, type]:
    found = {
        name: value
        for module in _modules()
        for name, value in getmembers(module, isclass)
        if value.__module__ == module.__name__ and hasattr(value, "apply") and hasattr(value, "revert")
    }
    return MappingProxyType(found)


STEPS = _steps()
