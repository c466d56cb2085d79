"""What kinds there are: the API's own (resources.txt), and those that CustomResourceDefinitions in the db add."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from drtool.core.errors import UsageError
from snapshots.registry.envelope import MISTYPED
from snapshots.registry.keys import Place, prefix_of

IN_KEY = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Groups of the API's own resources whose keys have the group in them."""
WIDE_PRIORITY = 1


class PrinterColumn(NamedTuple):
    """One of a CRD's additionalPrinterColumns; `kind` is its type, `date` shows as an age."""

    head: str
    path: str
    kind: str
    wide: bool


class Resource(NamedTuple):
    """A kind as discovery names it; `printer_columns` are a CRD's own, None where it gives none or there is no CRD."""

    plural: str
    short_names: tuple[str, ...]
    api_version: str
    namespaced: bool
    kind: str
    categories: tuple[str, ...] = ()
    custom: bool = False
    printer_columns: tuple[PrinterColumn, ...] | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def full_name(self) -> str:
        """As `kubectl get -o name` writes it before the slash, in the plural: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def prefix(self, root: str, namespace: str = "") -> bytes:
        group = self.group if self.custom or self.group in IN_KEY else ""
        return prefix_of(group, self.plural, namespace, root)

    def names(self) -> tuple[str, ...]:
        """What a person may call it, in lower case."""
        return (self.plural, self.kind.lower(), *self.short_names)


@cache
def built_in() -> tuple[Resource, ...]:
    lines = Path(__file__).with_name("resources.txt").read_text().splitlines()
    return tuple(_line(line) for line in lines if not line.startswith("#"))


def _line(line: str) -> Resource:
    plural, short, api_version, namespaced, kind, categories = line.split("\t")
    return Resource(plural, _listed(short), api_version, namespaced == "true", kind, _listed(categories))


def _listed(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


def defined(definition: dict[str, Any]) -> Resource | None:
    """The resource that a CustomResourceDefinition (as v1 shows it) adds; None where it is not well formed."""
    spec = definition.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return None
    versions = [each for each in spec.get("versions") or [] if isinstance(each, dict)]
    version = next((each for each in versions if each.get("storage")), versions[0] if versions else {})
    columns = version.get("additionalPrinterColumns")
    return Resource(
        plural=str(names.get("plural", "")),
        short_names=tuple(map(str, names.get("shortNames") or ())),
        api_version=f"{spec.get('group', '')}/{version.get('name', '')}",
        namespaced=spec.get("scope") == "Namespaced",
        kind=str(names.get("kind", "")),
        categories=tuple(map(str, names.get("categories") or ())),
        custom=True,
        printer_columns=tuple(map(_column, columns)) if isinstance(columns, list) and columns else None,
    )


def _defined(definition: dict[str, Any]) -> Resource | None:
    try:
        return defined(definition)
    except MISTYPED:
        return None


def _column(column: dict[str, Any]) -> PrinterColumn:
    wide = int(column.get("priority") or 0) >= WIDE_PRIORITY
    return PrinterColumn(
        str(column.get("name", "")), str(column.get("jsonPath", "")), str(column.get("type", "")), wide
    )


@dataclass(frozen=True, slots=True)
class Resources:
    """All kinds of one db."""

    all: tuple[Resource, ...]

    def find(self, words: str) -> tuple[Resource, ...]:
        """`deploy,svc`, `deployments.apps`, `deployment.v1.apps`, `all`; UsageError names what is nearest to others."""
        found: dict[Resource, None] = {}
        for word in filter(None, words.split(",")):
            matches = tuple(self._matching(word))
            if not matches:
                raise UsageError(f"no kind is called {word}", self._hint(word))
            found.update(dict.fromkeys(matches))
        return tuple(found)

    def of(self, place: Place) -> Resource:
        """The resource of a key; one made up from the key where nothing names its kind."""
        for resource in self.all:
            if resource.plural == place.resource and place.group in ("", resource.group):
                return resource
        return Resource(place.resource, (), f"{place.group}/" if place.group else "", bool(place.namespace), "")

    def _matching(self, word: str) -> Iterator[Resource]:
        lower = word.lower()
        if lower == "all":
            yield from (each for each in self.all if "all" in each.categories)
            return
        name, _, group = lower.partition(".")
        version, _, rest = group.partition(".")
        for each in self.all:
            if name in each.names() and (not group or group in (each.group, each.api_version)):
                yield each
                if not group:
                    return  # the API's own come first, as kubectl prefers them
            elif name in each.names() and each.api_version in (f"{rest}/{version}", version if not rest else ""):
                yield each
        yield from (each for each in self.all if lower in each.categories)

    def _hint(self, word: str) -> str:
        near = difflib.get_close_matches(word.lower(), [name for each in self.all for name in each.names()], n=3)
        return f"nearest: {', '.join(near)}" if near else "drtool ls without a kind lists what there is"


def resources(definitions: Iterable[dict[str, Any]] = ()) -> Resources:
    custom = map(_defined, definitions)
    return Resources((*built_in(), *(each for each in custom if each is not None)))
