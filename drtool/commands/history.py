"""The revisions of one object that a source still holds."""

from __future__ import annotations

from dataclasses import dataclass

from drtool.commands.get import NoSuchObject
from snapshots.registry import keys
from snapshots.registry.comparing import differences
from snapshots.registry.objects import Object, Registry
from snapshots.registry.resources import Resource

CREATED, UPDATED, DELETED = "created", "updated", "deleted"


@dataclass(frozen=True, slots=True)
class Step:
    """One revision: what happened, and the paths of the fields that changed since the one before."""

    revision: int
    change: str
    fields: tuple[str, ...] = ()
    trouble: str = ""


def history(registry: Registry, resource: Resource, namespace: str, name: str) -> tuple[Step, ...]:
    """Oldest first. Raises NoSuchObject where no revision is left."""
    key = resource.prefix(registry.root, namespace if resource.namespaced else "") + name.encode()
    place = keys.place(key, registry.root)
    steps: list[Step] = []
    before: Object | None = None
    for change in registry.changes(key) if place else ():
        if change.kv is None or place is None:
            steps.append(Step(change.revision.main, DELETED))
            before = None
            continue
        after = registry.read(change.kv, place)
        first = change.kv.mod_revision == change.kv.create_revision
        fields = _changed(before, after) if before else ()
        steps.append(Step(change.revision.main, CREATED if first else UPDATED, fields, after.trouble))
        before = after
    if not steps:
        raise NoSuchObject(
            f'{registry.name}: no revision of {resource.full_name} "{name}" is left',
            "it never was, or compaction removed it: try an older backup",
        )
    return tuple(steps)


def _changed(before: Object, after: Object) -> tuple[str, ...]:
    found = differences(before.body, after.body)
    return tuple(each.path for each in found if each.path != "metadata.resourceVersion")
