"""What two sources' objects differ in: added, removed, changed, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from snapshots.registry import keys
from snapshots.registry.comparing import ABSENT, Difference, differences, without_noise
from snapshots.registry.masking import HIDDEN, masked
from snapshots.registry.objects import Object, Pair, Registry
from snapshots.registry.resources import Resource
from snapshots.registry.selectors import EVERYTHING, Selector

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
NOISY_KINDS = frozenset({"Lease", "Event"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What is compared. `noise`: status, what the server keeps in metadata, leases and events too."""

    resources: tuple[Resource, ...] = ()
    namespace: str = ""
    selector: Selector = EVERYTHING
    noise: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """One object. `fields` are empty for what was added or removed; `trouble` where a side could not be read."""

    change: str
    object: Object
    fields: tuple[Difference, ...] = ()
    trouble: str = ""


def diff(before: Registry, after: Registry, scope: Scope = Scope()) -> Iterator[Changed]:
    """By key, as both sides give them: neither is held in memory."""
    for prefix in _prefixes(before, scope):
        for left, right in merged(before.source.prefix(prefix), after.source.prefix(prefix)):
            found = _compared(before, after, left, right, scope)
            if found is not None:
                yield found


def _prefixes(registry: Registry, scope: Scope) -> Iterator[bytes]:
    if not scope.resources:
        yield f"{registry.root}/".encode()
    for resource in scope.resources:
        if resource.namespaced or not scope.namespace:
            yield resource.prefix(registry.root, scope.namespace if resource.namespaced else "")


def merged(left: Iterator[Pair], right: Iterator[Pair]) -> Iterator[tuple[Pair | None, Pair | None]]:
    """Two streams in the order of their keys, as one of pairs with equal keys."""
    a, b = next(left, None), next(right, None)
    while a is not None or b is not None:
        if b is None or (a is not None and a.key < b.key):
            yield a, None
            a = next(left, None)
        elif a is None or b.key < a.key:
            yield None, b
            b = next(right, None)
        else:
            yield a, b
            a, b = next(left, None), next(right, None)


def _compared(before: Registry, after: Registry, left: Pair | None, right: Pair | None, scope: Scope) -> Changed | None:
    if left is not None and right is not None and left.value == right.value and not scope.noise:
        return None
    one = left or right
    place = keys.place(one.key, before.root) if one else None
    if place is None or (scope.namespace and place.namespace != scope.namespace):
        return None
    old = before.read(left, place) if left else None
    new = after.read(right, place) if right else None
    shown = new or old
    if shown is None or not scope.selector.matches(shown.labels) or (not scope.noise and shown.kind in NOISY_KINDS):
        return None
    if old is None or new is None:
        return Changed(ADDED if old is None else REMOVED, shown, trouble=shown.trouble)
    if old.trouble or new.trouble:
        return Changed(CHANGED, new, trouble=new.trouble or old.trouble)
    fields = _fields(old.body, new.body, scope)
    return Changed(CHANGED, new, fields) if fields else None


def _fields(old: dict[str, Any], new: dict[str, Any], scope: Scope) -> tuple[Difference, ...]:
    """Secrets are compared by their values and shown by their sizes."""
    left, right = (body if scope.noise else without_noise(body) for body in (old, new))
    found = differences(left, right)
    if old.get("kind") != "Secret":
        return tuple(found)
    return tuple(_hidden(each, masked(left), masked(right)) for each in found)


def _hidden(found: Difference, left: dict[str, Any], right: dict[str, Any]) -> Difference:
    visible = {each.path: each for each in differences(left, right)}
    if found.path in visible:
        return visible[found.path]
    return Difference(found.path, HIDDEN, HIDDEN + " (differs)")


def as_data(found: Changed) -> dict[str, Any]:
    """camelCase, for JSON and YAML."""
    return {
        "change": found.change,
        "kind": found.object.kind,
        "apiVersion": str(found.object.body.get("apiVersion", "")),
        "namespace": found.object.namespace,
        "name": found.object.name,
        "fields": [
            {"path": each.path}
            | ({} if each.before is ABSENT else {"before": each.before})
            | ({} if each.after is ABSENT else {"after": each.after})
            for each in found.fields
        ],
    } | ({"trouble": found.trouble} if found.trouble else {})
