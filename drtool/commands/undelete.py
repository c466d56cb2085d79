"""Lost objects as YAML that `kubectl apply --server-side` takes, in the order in which they need each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from snapshots.registry import keys
from snapshots.registry.cleaning import cleaned, order, reason_to_leave_out
from snapshots.registry.objects import Object, Registry
from snapshots.registry.resources import Resource
from snapshots.registry.selectors import EVERYTHING, Selector


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which objects: of `resources` (none: all), in a namespace, of these names, with these labels."""

    resources: tuple[Resource, ...] = ()
    namespace: str = ""
    names: tuple[str, ...] = ()
    selector: Selector = EVERYTHING


@dataclass(frozen=True, slots=True)
class Undeleted:
    """`bodies` in the order to apply them; `left_out` are (object, why)."""

    bodies: tuple[dict[str, Any], ...]
    left_out: tuple[tuple[Object, str], ...]


def undelete(registry: Registry, wanted: Wanted, missing_in: Registry | None = None) -> Undeleted:
    """With `missing_in`, only what that source has no object of the same key for."""
    present = set(missing_in.source.keys(f"{missing_in.root}/".encode())) if missing_in else set()
    found = [each for each in _matching(registry, wanted) if each.key not in present]
    uids = {str(each.metadata.get("uid")) for each in found}
    living = frozenset(_uids(missing_in)) if missing_in else frozenset()
    reasons = [(each, reason_to_leave_out(each, lambda uid: uid in uids or uid in living)) for each in found]
    kept = [each for each, reason in reasons if not reason]
    volumes = _volumes(kept, missing_in)
    bodies = (cleaned(each.body, living.__contains__, volumes.__contains__) for each in kept)
    return Undeleted(tuple(sorted(bodies, key=order)), tuple((each, why) for each, why in reasons if why))


def _matching(registry: Registry, wanted: Wanted) -> Iterator[Object]:
    for each in _candidates(registry, wanted):
        inside = not wanted.namespace or each.namespace == wanted.namespace or _is_namespace(each, wanted)
        named = not wanted.names or each.name in wanted.names
        if inside and named and wanted.selector.matches(each.labels):
            yield each


def _candidates(registry: Registry, wanted: Wanted) -> Iterator[Object]:
    if not wanted.resources:
        yield from registry.everything()
    for resource in wanted.resources:
        yield from registry.objects(resource, wanted.namespace if resource.namespaced else "")


def _is_namespace(found: Object, wanted: Wanted) -> bool:
    """The Namespace itself is lost with what was in it."""
    return found.kind == "Namespace" and found.name == wanted.namespace and not wanted.resources


def _uids(registry: Registry) -> Iterator[str]:
    """Of everything alive: what owner references may point to."""
    for each in registry.everything():
        yield str(each.metadata.get("uid"))


def _volumes(kept: Iterable[Object], missing_in: Registry | None) -> set[str]:
    written = {each.name for each in kept if each.kind == "PersistentVolume"}
    if missing_in is None:
        return written
    below = keys.prefix_of("", "persistentvolumes", "", missing_in.root)
    return written | {place.name for place in missing_in.places(below)}
