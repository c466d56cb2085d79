"""Objects of a db, one level at a time, for the Objects screen: kinds, objects of a kind, one object as YAML.

The source stays open for as long as the UI runs.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

from drtool.commands.get import Query, get
from drtool.commands.ls import Kind, kinds, places
from drtool.commands.opening import Opening, opened
from drtool.config import load
from drtool.host.root import Root
from snapshots.registry.keys import Place
from snapshots.registry.masking import masked
from snapshots.registry.objects import Registry
from snapshots.registry.printing import as_yaml
from snapshots.registry.resources import Resource

OWN_DATA = "/var/lib/etcd"


@dataclass
class Browser:
    root: Root
    source: str
    _open: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        """Raises what `opened` does."""
        source = self.source or str(self.root.locate(OWN_DATA))
        self.registry: Registry = self._open.enter_context(opened(source, Opening(load(), root=self.root)))

    def close(self) -> None:
        self._open.close()

    def kinds(self) -> tuple[Kind, ...]:
        return kinds(self.registry)

    def objects(self, resource: Resource) -> tuple[tuple[Resource, Place], ...]:
        return places(self.registry, resource.full_name)

    def lines(self, resource: Resource, place: Place) -> list[str]:
        """YAML with Secrets masked; why it cannot be shown where it is damaged or locked."""
        query = Query((resource.full_name, place.name), place.namespace or "default")
        found = [one for each in get(self.registry, query) for one in each.objects]
        if not found:
            return [f"{place} is not there any more"]
        one = found[0]
        if one.trouble:
            return [f"{one.key.decode('utf-8', 'replace')}: {one.trouble}"]
        body = dict(one.body)
        body["metadata"] = {key: value for key, value in one.metadata.items() if key != "managedFields"}
        return as_yaml(masked(body)).splitlines()
