"""`drtool survivors`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drtool.cli._output import columns, emit, visible
from drtool.cli._plan import Answers, plan_options, present
from drtool.cli._progress import shown
from drtool.cli._types import ANY_PATH

if TYPE_CHECKING:
    from snapshots.survivors import Survivor, Verdict

NONE_USABLE = 4


@click.command(epilog="Example: drtool survivors /var/lib/etcd /mnt/cp-2/etcd /mnt/cp-3/etcd")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=ANY_PATH)
@click.option("--rebuild", is_flag=True, help="On the node with the newest data: make it a new cluster, as a plan.")
@plan_options
def command(directories: tuple[Path, ...], rebuild: bool, progress: bool, output: str, **options: Any) -> int:
    """After quorum loss: which member's data is newest, and the plan to rebuild from it.

    DIR is a stopped member's data directory or a copy of one. Nothing is changed without --rebuild --apply, which makes
    this node's own member a cluster of one that the others then join empty. Exit status 4: none can be rebuilt from.
    """
    answers = Answers(progress=progress, **options)
    if rebuild:
        from drtool.commands import rebuild as rebuilding
        from drtool.host.root import Root

        places = " ".join(map(str, directories))
        planned = rebuilding.plan(Root(answers.root), directories)
        present(planned, answers, output, f"drtool survivors {places} --rebuild --apply")
        return 0
    from drtool.commands.survivors import plan, survivors

    with shown(progress) as listener:
        verdict = survivors(directories, listener)
    steps = plan(verdict)
    emit(as_data(verdict, steps), output, lambda: as_table(verdict, steps))
    return 0 if verdict.best else NONE_USABLE


def as_data(verdict: Verdict, steps: tuple[str, ...]) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "best": str(verdict.best.directory) if verdict.best else None,
        "members": [_member(one) for one in verdict.survivors],
        "losses": [
            {"directory": str(loss.directory), "entries": loss.entries, "revisions": loss.revisions}
            for loss in verdict.losses
        ],
        "newerInDb": str(verdict.newer.directory) if verdict.newer else None,
        "plan": list(steps),
    }


def _member(one: Survivor) -> dict[str, Any]:
    return {
        "directory": str(one.directory),
        "name": one.name,
        "memberId": f"{one.member_id:x}",
        "clusterId": f"{one.cluster_id:x}",
        "peerURLs": list(one.peer_urls),
        "lastTerm": one.term,
        "lastIndex": one.index,
        "commitIndex": one.commit,
        "unconfirmed": one.unconfirmed,
        "revision": one.revision,
        "revisionInDb": one.db_revision,
        "tornTail": one.torn,
        "openInEtcd": one.live,
        "damage": one.damage,
    }


def as_table(verdict: Verdict, steps: tuple[str, ...]) -> str:
    lost = {loss.directory: loss for loss in verdict.losses}
    rows = []
    for one in verdict.survivors:
        loss = lost.get(one.directory)
        if one is verdict.best:
            says = "rebuild from this one"
        elif one.live:
            says = "open in a running etcd: stop it first"
        elif one.damage:
            says = one.damage
        else:
            says = f"lacks {loss.entries} entries, {loss.revisions} revisions" if loss else ""
        rows.append(
            (one.name or "?", str(one.directory), f"{one.term}/{one.index}", str(one.commit), str(one.revision), says)
        )
    heads = ("MEMBER", "DIRECTORY", "TERM/INDEX", "COMMIT", "REVISION", "VERDICT")
    text = columns(heads, rows)
    best = verdict.best
    if best is None:
        return text + "\n\nNone of these can be rebuilt from: restore a backup."
    notes = []
    if best.unconfirmed:
        notes.append(
            f"{best.unconfirmed} of its entries are not known to be on a majority; they may have been acknowledged, so "
            "they are kept (drtool restore --committed-only leaves them out)"
        )
    if (newer := verdict.newer) is not None:
        notes.append(
            f"NOT the newest data: the log of {newer.directory} is damaged, but its db alone is at revision "
            f"{newer.db_revision}, this one at {best.revision} (drtool restore {newer.directory} --skip-hash-check)"
        )
    if verdict.members > verdict.readable:
        notes.append(
            f"the cluster had {verdict.members} members, {verdict.readable} can be read here: another may have newer "
            "data"
        )
    numbered = [f"{number}. {visible(step)}" for number, step in enumerate(steps, 1)]
    return "\n\n".join([text, *notes, "\n".join(numbered)])
