"""What the first screen needs of a node's report: small enough to come from another process.

What judges a node is imported only where a glance is made: where it came from another process it can wait.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from drtool.core.causes import Verdict
from drtool.host.beside import beside
from drtool.host.root import Root

if TYPE_CHECKING:
    from drtool.commands.check import Report


@dataclass(frozen=True, slots=True)
class Glance:
    """Names of node and cluster, and `facts`, a few words each: version and layout, members, nearest expiry.

    `name` is "" where nothing names the node.
    """

    name: str
    cluster: str
    facts: tuple[str, ...]
    verdict: Verdict


@contextmanager
def first_glance(root: Root, at: datetime | None) -> Iterator[Callable[[], Glance]]:
    """Judges the files in a child process while this one loads the screens; yields what waits for the answer."""
    with beside(lambda: pickle.dumps(glance_at(root, at))) as answer:
        yield lambda: pickle.loads(answer())  # noqa: S301 - from our own child


def glance_at(root: Root, at: datetime | None) -> Glance:
    """What the files alone say."""
    from drtool.commands.check import check

    return glance(check(root, at, probe=False))


def glance(report: Report) -> Glance:
    from manifests.identity import cluster_name

    version = report.node.kubernetes
    words = "v" + ".".join(map(str, version)) if version else "version unknown"
    parts = (f"{words} {report.node.layout}", _member_words(report), _expiry_words(report))
    return Glance(report.node.name, cluster_name(report.node), tuple(part for part in parts if part), report.verdict)


def _member_words(report: Report) -> str:
    """As the running etcd says, else as the manifest's flags do."""
    from drtool.core.check import EvidenceMissing, NotApplicable
    from manifests.identity import members

    try:
        found = report.node.etcd_state.members
    except (EvidenceMissing, NotApplicable):
        listed = len(members(report.node))
        return f"{listed} etcd member{'s' if listed > 1 else ''} listed" if listed else ""
    learners = sum(member.learner for member in found)
    return f"{len(found) - learners} voting members" + (f", {learners} learners" if learners else "")


def _expiry_words(report: Report) -> str:
    from manifests.pki.credentials import credentials

    dates = [c.certificate.not_after for c in credentials(report.node) if c.certificate is not None]
    return f"expiry in {(min(dates) - report.node.at).days} d" if dates else "no certificates seen"
