"""After quorum loss: which member's directory holds the newest data, and what each other one lacks.

Of several members the one whose last entry has the highest (term, index) has every entry that was ever committed: raft
elects by the same rule. Entries beyond a member's own commit index may have been acknowledged, so they are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from drtool.core.errors import DrtoolError, Unsound
from drtool.core.events import Listener, Progress, silent
from snapshots import cluster, datadir, member_dir
from snapshots.replay import replay


@dataclass(frozen=True, slots=True)
class Survivor:
    """One directory. `damage` says why it cannot be rebuilt from, in one line; what is not known then is 0 or empty.

    `revision` is the newest with the log applied, `db_revision` without. `unconfirmed` entries are beyond `commit`.
    `sound_db` is whether the db alone could be restored.
    """

    directory: Path
    damage: str = ""
    member_id: int = 0
    cluster_id: int = 0
    name: str = ""
    peer_urls: tuple[str, ...] = ()
    term: int = 0
    index: int = 0
    commit: int = 0
    db_revision: int = 0
    revision: int = 0
    unconfirmed: int = 0
    members: int = 0
    live: bool = False
    torn: bool = False
    sound_db: bool = False


@dataclass(frozen=True, slots=True)
class Loss:
    """What is lost by rebuilding from this directory instead of the best one."""

    directory: Path
    entries: int
    revisions: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """`best` is None where no directory can be rebuilt from. `newer` cannot, but its db alone has newer data."""

    survivors: tuple[Survivor, ...]
    best: Survivor | None
    losses: tuple[Loss, ...]
    newer: Survivor | None = None

    @property
    def readable(self) -> int:
        """How many of the cluster's members these are, a copy of one not counted again."""
        return len({one.member_id for one in self.survivors if one.member_id and not one.damage})

    @property
    def members(self) -> int:
        """How many the cluster had, as far as any db tells: one that was killed early may not have written it yet."""
        return max((one.members for one in self.survivors), default=0)


def compare(directories: Sequence[Path], listener: Listener = silent) -> Verdict:
    """Reads every directory; one that is damaged does not hide the others.

    Raises Unsound where they belong to different clusters.
    """
    survivors = []
    for done, directory in enumerate(directories):
        listener(Progress("members", done, len(directories), "members"))
        survivors.append(read(directory))
    known = {one.cluster_id for one in survivors if one.cluster_id}
    if len(known) > 1:
        places = ", ".join(f"{one.directory}: {one.cluster_id:x}" for one in survivors if one.cluster_id)
        raise Unsound(f"these are members of different clusters: {places}", "name directories of one cluster")
    return judge(survivors)


def judge(survivors: Sequence[Survivor]) -> Verdict:
    usable = [one for one in survivors if not one.damage and not one.live]
    best = max(usable, key=lambda one: (one.term, one.index, one.revision), default=None)
    if best is None:
        return Verdict(tuple(survivors), None, ())
    losses = tuple(
        Loss(one.directory, max(best.index - one.index, 0), max(best.revision - one.revision, 0))
        for one in usable
        if one is not best
    )
    beyond = [one for one in survivors if one.damage and one.sound_db and one.db_revision > best.revision]
    return Verdict(tuple(survivors), best, losses, max(beyond, key=lambda one: one.db_revision, default=None))


def read(directory: Path) -> Survivor:
    """Never raises for what the directory holds; PermissionError where another user could read it."""
    try:
        with member_dir.opened(directory) as held:
            return _read(held)
    except DrtoolError as wrong:
        return Survivor(directory, damage=wrong.what)
    except PermissionError:
        raise
    except OSError as wrong:  # a dying disk, a file in the place of a directory
        return Survivor(directory, damage=f"{wrong.filename or directory}: {wrong.strerror}")


def _read(held: member_dir.MemberDir) -> Survivor:
    term, index = held.last
    known = {one.id: one for one in cluster.members(held.keyspace)}
    me = known.get(held.log.member_id)
    damage, sound = member_dir.damage(held)
    revision = held.keyspace.last().main
    if not damage:
        try:
            revision = replay(held.keyspace, held.missing()).revision
        except Unsound as wrong:
            damage = wrong.what
    return Survivor(
        directory=held.directory,
        damage=damage,
        member_id=held.log.member_id,
        cluster_id=held.log.cluster_id,
        name=me.name if me else "",
        peer_urls=me.peer_urls if me else (),
        term=term,
        index=index,
        commit=held.commit,
        db_revision=held.keyspace.last().main,
        revision=revision,
        unconfirmed=max(index - held.commit, 0),
        members=len(known),
        live=datadir.in_use(held.db),
        torn=held.log.tail.kind == "torn",
        sound_db=sound,
    )
