"""`drtool restore`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drtool.cli._output import columns, emit
from drtool.cli._plan import plan_options
from drtool.cli._progress import shown, size
from drtool.cli._store import configured, store_options
from drtool.cli._types import ANY_PATH
from drtool.core.errors import UsageError

if TYPE_CHECKING:
    from drtool.config import Config
    from snapshots.restore import Restored


@click.command(
    epilog="Example: drtool restore snapshot.db --to /var/lib/etcd --name cp-1 "
    "--initial-advertise-peer-urls https://192.0.2.1:2380"
)
@click.argument("source", metavar="BACKUP|FILE", default="")
@click.option("--to", "target", type=ANY_PATH, help="A new or an empty directory; nothing else.")
@click.option("--node", is_flag=True, help="This node's etcd, as a plan: see --apply.")
@click.option("--members", default="", metavar="NAME=URL,...", help="With --node: every member that is restored.")
@click.option("--join", default="", metavar="URL", help="With --node: empty this member and join it to that etcd.")
@click.option("--force", is_flag=True, help="With --node: although the CA, the keys or the clock do not fit.")
@click.option("--name", default="", help="The member whose directory it is.  [default: default]")
@click.option("--initial-cluster", default="", metavar="NAME=URL,...", help="All members, one to seven.")
@click.option("--initial-advertise-peer-urls", "peer_urls", default="", metavar="URL", help="This member's own.")
@click.option(
    "--token", "--initial-cluster-token", "token", default="", help="The same for all members.  [default: random]"
)
@click.option(
    "--revision-bump", "bump", default=1_000_000_000, show_default=True, type=click.IntRange(min=0),
    help="Step over this many revisions, so that watchers cannot mistake old for new. 0: leave the revision.",
)  # fmt: skip
@click.option("--mark-compacted/--no-mark-compacted", default=True, show_default=True, help="With a revision bump.")
@click.option("--target-version", default="", metavar="X.Y", help="Adapt the db to an older server line.")
@click.option("--clear-alarms", is_flag=True, help="Leave out the alarms that the snapshot holds.")
@click.option("--disable-auth", is_flag=True, help="Turn etcd's own user authentication off.")
@click.option("--skip-hash-check", is_flag=True, help="Without or with a wrong trailing hash, if it is sound.")
@click.option("--committed-only", is_flag=True, help="From a member's directory: what a majority is known to have.")
@store_options
@plan_options
def command(source: str, target: Path | None, node: bool, output: str, **options: Any) -> None:
    """Restore a BACKUP of the store, or a snapshot FILE.

    --to DIR makes a data directory, and nothing else of this node is touched. --node puts this whole node back, as a
    plan that is printed first: the data directory is made and judged, then the API server and etcd are stopped, the
    present data moved aside, the new put in its place, and everything started again.
    """
    if node == (target is not None):
        raise UsageError("where to? Give --to DIR, or --node for this node")
    if node:
        from drtool.cli import _restore_node

        _restore_node.command(source, configured(options), output, options)
        return
    for name in ("members", "join", "force", "root", "apply", "yes", "dry_run"):
        if options.pop(name) not in ("", False, Path("/")):
            raise UsageError(f"--{name.replace('_', '-')} goes with --node, not with --to")
    _to(source, target or Path(), configured(options), output, **options)


def _to(
    source: str, target: Path, config: Config, output: str, skip_hash_check: bool, progress: bool, **wanted: Any
) -> None:
    from drtool.commands.restore import Wanted, restore
    from drtool.commands.restore_node import pieces, source_of

    with shown(progress) as listener:
        chosen = source_of(source, config)
        made = restore(pieces(chosen, listener), target, Wanted(check_hash=not skip_hash_check, **wanted), listener)
    name = str(chosen) if isinstance(chosen, Path) else chosen.id
    for line in warnings(made):
        click.echo(f"drtool: {line}", err=True)
    emit({"schemaVersion": 1, "source": name, **as_data(made)}, output, lambda: as_table(made, name))


def warnings(made: Restored) -> list[str]:
    """What survives the restore and would surprise."""
    found = []
    if "NOSPACE" in made.alarms:
        found.append("the NOSPACE alarm is still raised: etcd will refuse every write; --clear-alarms leaves it out")
    found += [f"the alarm {kind} is still raised; --clear-alarms leaves it out" for kind in made.alarms
              if kind != "NOSPACE"]  # fmt: skip
    if made.auth:
        found.append("etcd's user authentication stays enabled with the old passwords; --disable-auth turns it off")
    found += [f"{count} entries could not be applied: {kind}" for kind, count in made.ignored.items()]
    if not made.hashed:
        found.append("no trailing hash vouches for these bytes: only the structure was checked")
    return found


def as_data(made: Restored) -> dict[str, Any]:
    return {
        "directory": str(made.directory),
        "memberId": f"{made.member_id:x}",
        "clusterId": f"{made.cluster_id:x}",
        "revision": made.revision,
        "newRevision": made.bumped,
        "size": made.size,
        "hashChecked": made.hashed,
        "entriesReplayed": made.replayed,
        "alarms": list(made.alarms),
        "authEnabled": made.auth,
        "boots": [str(line) for line in made.boots],
    }


def as_table(made: Restored, source: str) -> str:
    bumped = "" if made.bumped == made.revision else f", bumped to {made.bumped}"
    return columns(
        ("RESTORED", str(made.directory)),
        [
            ("from", source),
            ("member", f"{made.member_id:x}"),
            ("cluster", f"{made.cluster_id:x}"),
            ("revision", f"{made.revision}{bumped}"),
            ("entries replayed", str(made.replayed)),
            ("size", size(made.size)),
            ("boots under etcd", ", ".join(map(str, made.boots))),
        ],
    )
