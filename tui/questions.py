"""What the screens ask: each question a command, by name. A thread runs it; nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from drtool.commands.scratch_marker import acts_on
from drtool.host.root import Root
from tui.glance import glance_at


def questions(roots: Sequence[Root], at: datetime | None, source: str) -> dict[str, Callable[[], Any]]:
    """`source` is what the Objects screen browses: a backup, a file, a data directory, or "" for the node's own db."""
    root = roots[0]

    def glance() -> Any:
        return glance_at(root, at)

    def check() -> Any:
        from drtool.commands.check import check

        return check(root, at, probe=False)

    def probed() -> Any:
        from drtool.commands.check import check

        return check(root, at, probe=True)

    def certificates() -> Any:
        from drtool.commands.certs import certs

        return certs(root, at)

    def etcd() -> Any:
        from drtool.commands.capture import gather
        from drtool.commands.etcd_overview import etcd_overview
        from manifests.node import seen

        return etcd_overview(root, seen(gather(root), at))

    def backups() -> Any:
        from drtool.commands.fetch import shelf
        from drtool.config import load

        return shelf(load()).inventory()

    def plans() -> Any:
        from drtool.commands.carrying import listed

        return listed(root)

    def nodes() -> Any:
        from drtool.commands.check import check_together

        return check_together(roots, at, probe=False)

    def objects() -> Any:
        from tui.browsing import Browser

        return Browser(root, source)

    asked = {
        "glance": glance,
        "check": check,
        "certificates": certificates,
        "etcd": etcd,
        "backups": backups,
        "plans": plans,
        "nodes": nodes,
        "objects": objects,
    }
    return {**asked, "probed": probed} if acts_on(root) else asked
