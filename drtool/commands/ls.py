"""What a source holds: how many objects of which kinds, and where they lie. Nothing but CRDs is decoded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from snapshots.registry.keys import Place
from snapshots.registry.objects import Registry
from snapshots.registry.resources import Resource


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource and how many objects of it there are; `namespaces` is how many namespaces they lie in."""

    resource: Resource
    objects: int
    namespaces: int


def kinds(registry: Registry, namespace: str = "") -> tuple[Kind, ...]:
    """By name; with `namespace` only what lies in it."""
    counts: Counter[Resource] = Counter()
    spaces: dict[Resource, set[str]] = {}
    for (group, plural, space), count in registry.counts().items():
        if namespace and space != namespace:
            continue
        resource = registry.resources.of(Place(group, plural, space, ""))
        counts[resource] += count
        spaces.setdefault(resource, set()).add(space)
    found = (Kind(each, count, len(spaces[each] - {""})) for each, count in counts.items())
    return tuple(sorted(found, key=lambda kind: (kind.resource.plural, kind.resource.group)))


def places(registry: Registry, words: str, namespace: str = "") -> tuple[tuple[Resource, Place], ...]:
    """Every object of the kinds that `words` name, in the order of their keys. UsageError for an unknown kind."""
    found: list[tuple[Resource, Place]] = []
    for resource in registry.resources.find(words):
        wanted = namespace if resource.namespaced else ""
        found += [(resource, place) for place in registry.places(resource.prefix(registry.root, wanted))]
    return tuple(found)
