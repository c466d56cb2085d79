"""Objects by kind, name, namespace and label, as kubectl selects them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.errors import DrtoolError, UsageError
from snapshots.registry import selectors
from snapshots.registry.objects import Object, Registry
from snapshots.registry.resources import Resource

DEFAULT_NAMESPACE = "default"


class NoSuchObject(DrtoolError):
    """The source holds no object of that name."""


@dataclass(frozen=True, slots=True)
class Query:
    """`words` are kubectl's: `deploy,svc`, `pod front-0 front-1`, `deploy/front svc/front`."""

    words: tuple[str, ...]
    namespace: str = DEFAULT_NAMESPACE
    all_namespaces: bool = False
    selector: str = ""

    @property
    def named(self) -> bool:
        return len(self.words) > 1 or "/" in self.words[0]


@dataclass(frozen=True, slots=True)
class Found:
    """The objects of one resource."""

    resource: Resource
    objects: tuple[Object, ...]


def get(registry: Registry, query: Query) -> tuple[Found, ...]:
    """Raises UsageError for an unknown kind or a bad selector, NoSuchObject for a name that is not there."""
    selector = selectors.parse(query.selector)
    if query.named and query.selector:
        raise UsageError("a name and a label selector exclude each other", "give one of them")
    found: dict[Resource, list[Object]] = {}
    for resource, name in _wanted(registry, query.words):
        space = _space(resource, query)
        matching = _read(registry, resource, space, name) if name else registry.objects(resource, space)
        listed = [each for each in matching if selector.matches(each.labels)]
        found.setdefault(resource, []).extend(listed)
    return tuple(Found(resource, tuple(objects)) for resource, objects in found.items())


def _wanted(registry: Registry, words: tuple[str, ...]) -> Iterator[tuple[Resource, str]]:
    if "/" in words[0]:
        for word in words:
            kind, slash, name = word.partition("/")
            if not slash or not name:
                raise UsageError(f"{word} is no KIND/NAME", "write all as KIND/NAME, or KIND and then names")
            yield registry.resources.find(kind)[0], name
        return
    for resource in registry.resources.find(words[0]):
        for name in words[1:] or ("",):
            yield resource, name


def _space(resource: Resource, query: Query) -> str:
    return query.namespace if resource.namespaced and not query.all_namespaces else ""


def _read(registry: Registry, resource: Resource, space: str, name: str) -> Iterator[Object]:
    if resource.namespaced and not space:
        found = [each for each in registry.objects(resource) if each.name == name]
    else:
        found = list(registry.objects(resource, space, name))
    if not found:
        where = f" in namespace {space}" if space else ""
        raise NoSuchObject(
            f'{registry.name}: {resource.full_name} "{name}" not found{where} at revision {registry.source.revision}',
            f"drtool history {resource.plural} {name} tells whether it was deleted",
        )
    yield from found
