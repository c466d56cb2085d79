"""What differs between two objects, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

ABSENT = object()
NAMES = ("name", "key", "type", "containerPort", "port", "mountPath", "ip", "uid")
"""What tells a list's elements apart, where each has it and no two share it."""
SERVER_KEPT = frozenset({"resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "selfLink"})
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Difference(NamedTuple):
    """`before` or `after` is ABSENT where the field is only on the other side."""

    path: str
    before: Any
    after: Any


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """In the order of the fields' names."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            here = f"{path}.{_quoted(name)}" if path else _quoted(name)
            yield from _entry(before.get(name, ABSENT), after.get(name, ABSENT), here)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _elements(before, after, path)
    elif before != after or type(before) is not type(after):
        yield Difference(path, before, after)


def _entry(before: Any, after: Any, path: str) -> Iterator[Difference]:
    if before is ABSENT or after is ABSENT:
        yield Difference(path, before, after)
    elif before != after:
        yield from differences(before, after, path)


def _elements(before: list[Any], after: list[Any], path: str) -> Iterator[Difference]:
    key = next((name for name in NAMES if _tells_apart(before, name) and _tells_apart(after, name)), None)
    if key is None:
        for place in range(max(len(before), len(after))):
            left = before[place] if place < len(before) else ABSENT
            right = after[place] if place < len(after) else ABSENT
            yield from _entry(left, right, f"{path}[{place}]")
        return
    left_by, right_by = ({each[key]: each for each in side} for side in (before, after))
    for name in dict.fromkeys([*left_by, *right_by]):
        yield from _entry(left_by.get(name, ABSENT), right_by.get(name, ABSENT), f"{path}[{name}]")


def _tells_apart(elements: list[Any], name: str) -> bool:
    found = [each.get(name) for each in elements if isinstance(each, dict)]
    usable = all(isinstance(each, str | int) for each in found)
    return usable and len(found) == len(elements) and len(set(found)) == len(found)


def _quoted(name: str) -> str:
    return f'"{name}"' if "." in name or "/" in name else name


def without_noise(body: dict[str, Any]) -> dict[str, Any]:
    """What people mean by an object: no status, no bookkeeping of the server's."""
    out = {name: value for name, value in body.items() if name != "status"}
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        kept = {name: value for name, value in metadata.items() if name not in SERVER_KEPT}
        annotations = kept.pop("annotations", None) or {}
        told = {name: value for name, value in annotations.items() if name != LAST_APPLIED}
        out["metadata"] = kept | ({"annotations": told} if told else {})
    return out
