"""`drtool undelete`"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drtool.cli._objects import SOURCE, from_option, namespace_options, opening, put, source_options, unmasked
from drtool.cli._output import visible
from drtool.cli._types import ANY_PATH
from drtool.core.errors import UsageError

if TYPE_CHECKING:
    from drtool.commands.undelete import Undeleted


@click.command(
    epilog="Example: drtool undelete -n shop --from latest -f shop.yaml; kubectl apply --server-side -f shop.yaml"
)
@click.argument("kinds", required=False, default="")
@click.argument("names", nargs=-1)
@from_option
@namespace_options
@click.option("-l", "--selector", default="", help="Only objects with these labels.")
@click.option("--missing-in", metavar="SOURCE", help=f"Only what is missing there. {SOURCE}")
@click.option("-f", "--file", type=ANY_PATH, help="Write there (mode 0600), Secrets too.")
@click.option("--show-secrets", is_flag=True, help="Secrets too; on a terminal only.")
@source_options
def command(kinds: str, names: tuple[str, ...], file: Path | None, **options: Any) -> int:
    """Write the YAML of lost objects, clean enough for `kubectl apply --server-side -f`.

    KINDS and NAMES, a namespace, a label, or with -A --missing-in live everything that is gone since the backup.
    What controllers make by themselves is left out. Secrets are written only with -f or --show-secrets.
    """
    from drtool.commands.opening import opened
    from drtool.commands.undelete import Wanted, undelete
    from snapshots.registry import selectors

    clear = unmasked(options.pop("show_secrets"), file)
    namespace, everywhere, revision = (options.pop(name) for name in ("namespace", "all_namespaces", "at_revision"))
    missing_in, source = options.pop("missing_in"), options.pop("source")
    if "/" in kinds and not names:  # KIND/NAME, as `drtool get` takes it too
        kinds, _, name = kinds.partition("/")
        names = (name,)
    selector = selectors.parse(options.pop("selector"))
    if not (namespace or everywhere or kinds):
        raise UsageError("undelete what?", "give a namespace with -n, kinds, or -A for everything")
    with opening(options) as how, opened(source, how, revision) as registry:
        wanted = Wanted(registry.resources.find(kinds) if kinds else (), namespace, names, selector)
        if missing_in is None:
            found = undelete(registry, wanted)
        else:
            with opened(missing_in, how) as other:
                found = undelete(registry, wanted, other)
    bodies = [body for body in found.bodies if clear or body.get("kind") != "Secret"]
    _say(found, len(found.bodies) - len(bodies))
    if bodies:
        from snapshots.registry.printing import as_yaml

        put("".join(f"---\n{as_yaml(body)}" for body in bodies), file)
    return 1 if any(each.trouble for each, _ in found.left_out) else 0


def _say(found: Undeleted, hidden: int) -> None:
    """On stderr: what is written and what is not, and why."""
    kinds = Counter(str(body.get("kind")) for body in found.bodies)
    click.echo(
        f"drtool: {len(found.bodies) - hidden} objects to apply, in this order of kinds: {', '.join(kinds)}", err=True
    )
    if hidden:
        click.echo(f"drtool: {hidden} Secrets left out: write to a file with -f FILE", err=True)
    for why, count in Counter(why for _, why in found.left_out).items():
        names = [str(each) for each, reason in found.left_out if reason == why]
        click.echo(
            f"drtool: left out: {visible(why)}: {visible(', '.join(names[:3]))}{' ...' if count > 3 else ''}", err=True
        )
