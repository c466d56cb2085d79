"""`drtool get`"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drtool.cli._objects import (
    aligned,
    from_option,
    namespace_options,
    put,
    say_troubles,
    source,
    source_options,
    unmasked,
)
from drtool.cli._types import ANY_PATH

if TYPE_CHECKING:
    from drtool.commands.get import Found
    from snapshots.registry.objects import Object

FORMATS = ("table", "wide", "yaml", "json", "name")


@click.command(epilog="Example: drtool get deploy,svc -n shop -l app=front --from latest -o yaml")
@click.argument("words", nargs=-1, required=True, metavar="KIND[,KIND] [NAME]... | KIND/NAME...")
@from_option
@namespace_options
@click.option("-l", "--selector", default="", help="Only objects with these labels: app=front,tier!=db.")
@click.option("-o", "--output", type=click.Choice(FORMATS), help="Default: yaml for names, else table.")
@click.option("-f", "--file", type=ANY_PATH, help="Write there (mode 0600), Secrets in clear.")
@click.option("--show-secrets", is_flag=True, help="Secrets in clear; on a terminal only.")
@click.option("--show-managed-fields", is_flag=True, help="Keep metadata.managedFields.")
@source_options
def command(words: tuple[str, ...], output: str | None, file: Path | None, **options: Any) -> int:
    """Print objects as kubectl would, without an API server.

    -o yaml and -o json are the objects as kubectl writes them. Exit status 1 where one cannot be read; the rest is
    printed all the same.
    """
    from drtool.commands.get import DEFAULT_NAMESPACE, Query, get

    clear = unmasked(options.pop("show_secrets"), file)
    managed, everywhere = options.pop("show_managed_fields"), options.pop("all_namespaces")
    query = Query(words, options.pop("namespace") or DEFAULT_NAMESPACE, everywhere, options.pop("selector"))
    with source(options.pop("source"), options, options.pop("at_revision"), managed) as registry:
        found = get(registry, query)
    form = output or ("yaml" if query.named else "table")
    objects = [each for kind in found for each in kind.objects]
    if not objects and form in ("table", "wide", "name"):
        where = "" if everywhere else f" in {query.namespace} namespace"
        click.echo(f"No resources found{where}.", err=True)
        return 0
    if form == "name":
        put("\n".join(f"{_title(kind)}/{each.name}" for kind in found for each in kind.objects), file)
    elif form in ("yaml", "json"):
        put(_text(objects, form, clear, single=query.named and len(objects) == 1), file)
    else:
        put(_tables(found, form == "wide", everywhere), file)
    return say_troubles(objects)


def _title(kind: Found) -> str:
    """`deployment.apps`: the singular that kubectl puts before the slash."""
    group = kind.resource.group
    return f"{kind.resource.kind.lower()}.{group}" if group else kind.resource.kind.lower()


def _text(objects: Sequence[Object], form: str, clear: bool, single: bool) -> str:
    from snapshots.registry import printing
    from snapshots.registry.masking import masked

    bodies = [each.body | _trouble(each) for each in objects]
    bodies = bodies if clear else [masked(body) for body in bodies]
    whole = bodies[0] if single else printing.listed(bodies)
    return printing.as_yaml(whole) if form == "yaml" else printing.as_json(whole)


def _trouble(found: Object) -> dict[str, Any]:
    """What stands in the place of an object that cannot be read."""
    if not found.trouble:
        return {}
    return {"$unreadable": {"key": found.key.decode("utf-8", "replace"), "reason": found.trouble}}


def _tables(found: Sequence[Found], wide: bool, everywhere: bool) -> str:
    from snapshots.registry.tables import table

    now = datetime.now(UTC)
    shown = [kind for kind in found if kind.objects]
    parts = []
    for kind in shown:
        made = table(kind.resource, kind.objects, now, wide, everywhere)
        rows = made.rows
        if len(shown) > 1:
            place = made.heads.index("NAME") if "NAME" in made.heads else None
            rows = tuple(_prefixed(row, place, _title(kind)) for row in rows)
        parts.append(aligned(made.heads, rows))
    return "\n\n".join(parts)


def _prefixed(row: tuple[str, ...], place: int | None, title: str) -> tuple[str, ...]:
    if place is None:
        return row
    return (*row[:place], f"{title}/{row[place]}", *row[place + 1 :])
