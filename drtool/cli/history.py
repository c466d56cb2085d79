"""`drtool history`"""

from __future__ import annotations

from typing import Any

import click

from drtool.cli._objects import SOURCE, aligned, source, source_options
from drtool.cli._output import emit, output_option
from drtool.commands.opening import LIVE
from drtool.core.errors import UsageError

FEW = 4


@click.command(epilog="Example: drtool history deploy front -n shop --from /var/lib/etcd")
@click.argument("kind", metavar="KIND NAME | KIND/NAME")
@click.argument("name", required=False, default="", metavar="")
@click.option("-n", "--namespace", default="default", show_default=True)
@click.option("--from", "source", default=LIVE, show_default=True, metavar="SOURCE", help=SOURCE)
@output_option
@source_options
def command(kind: str, name: str, namespace: str, output: str, **options: Any) -> int:
    """List the revisions of an object that the source still holds, deletions too.

    Each can be read with `drtool get KIND NAME --at-revision N`. A live etcd tells those since the object was created.
    """
    from drtool.commands.history import history

    if not name:
        kind, _, name = kind.partition("/")
    if not name:
        raise UsageError(
            f"the history of which {kind}?", "name one object, as in `drtool history deploy front -n shop`"
        )
    with source(options.pop("source"), options) as registry:
        resource = registry.resources.find(kind)[0]
        steps = history(registry, resource, namespace, name)
        data = {
            "schemaVersion": 1,
            "source": registry.name,
            "resource": resource.full_name,
            "namespace": namespace if resource.namespaced else "",
            "name": name,
            "revisions": [
                {"revision": step.revision, "change": step.change, "fields": list(step.fields), "trouble": step.trouble}
                for step in steps
            ],
        }
        rows = [(str(step.revision), step.change, step.trouble or _few(step.fields)) for step in steps]
        emit(data, output, lambda: aligned(("REVISION", "CHANGE", "FIELDS"), rows))
    return 0


def _few(fields: tuple[str, ...]) -> str:
    more = len(fields) - FEW
    return ", ".join(fields[:FEW]) + (f" and {more} more" if more > 0 else "")
