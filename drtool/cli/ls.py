"""`drtool ls`"""

from __future__ import annotations

from typing import Any

import click

from drtool.cli._objects import aligned, from_option, namespace_options, source, source_options
from drtool.cli._output import emit, output_option


@click.command(epilog="Example: drtool ls --from latest; drtool ls pods -n shop --from /var/lib/etcd")
@click.argument("kinds", required=False, default="")
@from_option
@namespace_options
@output_option
@source_options
def command(kinds: str, output: str, namespace: str, at_revision: int | None, **options: Any) -> int:
    """List what a source holds: how many objects of each kind, or with KINDS the objects themselves.

    Nothing is decoded, so it is quick and works whatever the values hold. Without -n: all namespaces.
    """
    from drtool.commands import ls

    name = options.pop("source")
    options.pop("all_namespaces")
    with source(name, options, at_revision) as registry:
        data: dict[str, Any] = {"schemaVersion": 1, "source": registry.name, "revision": registry.source.revision}
        if kinds:
            places = ls.places(registry, kinds, namespace)
            data["objects"] = [
                {"resource": kind.full_name, "namespace": place.namespace, "name": place.name} for kind, place in places
            ]
            rows = [(kind.full_name, place.namespace, place.name) for kind, place in places]
            emit(data, output, lambda: aligned(("RESOURCE", "NAMESPACE", "NAME"), rows))
            return 0
        counted = ls.kinds(registry, namespace)
        data["kinds"] = [
            {
                "resource": each.resource.full_name,
                "kind": each.resource.kind,
                "objects": each.objects,
                "namespaces": each.namespaces,
            }
            for each in counted
        ]
        rows = [(each.resource.full_name, str(each.objects), str(each.namespaces or "-")) for each in counted]
        emit(data, output, lambda: aligned(("RESOURCE", "OBJECTS", "NAMESPACES"), rows))
    return 0
