"""`drtool restore --node`: the plan, and with --apply the data directory made first, then the plan carried out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drtool.cli._plan import Answers, carry, present, refuse_elsewhere
from drtool.cli._progress import shown
from drtool.core.errors import UsageError

if TYPE_CHECKING:
    from drtool.config import Config


PLAN = ("root", "apply", "yes", "dry_run", "progress")
WANTED = ("members", "token", "bump", "clear_alarms", "force")


def command(source: str, config: Config, output: str, options: dict[str, Any]) -> None:
    """`options` are those of `drtool restore`, what a node's plan has no use for among them."""
    from drtool.commands import restore_node
    from drtool.commands.restore_node import Wanted
    from drtool.host.root import Root

    answers = Answers(**{name: options[name] for name in PLAN})
    root = Root(answers.root)
    if options["join"]:
        from drtool.commands import rebuild

        if source:
            raise UsageError("--join empties this member and takes the data from the others: no BACKUP goes with it")
        joining = rebuild.plan_join(root, options["join"])
        present(joining, answers, output, f"drtool restore --node --join {options['join']} --apply")
        return
    asked = Wanted(source, **{name: options[name] for name in WANTED})
    planned = restore_node.planned(root, asked, config)
    if not answers.applies:
        text = again(source, members=asked.members, token=planned.how.cluster.token if asked.members else "")
        present(planned.plan, answers, output, text)
        return
    refuse_elsewhere(planned.plan, answers)

    def prepare() -> None:
        with shown(answers.progress) as listener:
            made = restore_node.prepare(root, planned, asked.force, listener)
        click.echo(f"made and judged: {made.directory}, revision {made.revision}, bumped to {made.bumped}", err=True)

    carry(planned.plan, answers, output, prepare, lambda: restore_node.discard(root, planned))


def again(source: str, **options: Any) -> str:
    """The command that carries the plan out."""
    words = [f"--{name.replace('_', '-')} {value}" for name, value in options.items() if value]
    return " ".join(["drtool restore", str(Path(source)), "--node", *words, "--apply"])
