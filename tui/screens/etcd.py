"""etcd: members, alarms, sizes, raft index, from its files and from the running server."""

from __future__ import annotations

from collections.abc import Sequence

from drtool.commands.etcd_overview import Fact
from tui.screens.listing import Listing
from tui.widgets.rows import Row


class Etcd(Listing):
    NAME = "etcd"
    QUESTION = "etcd"

    def rows(self, value: object) -> Sequence[Row]:
        assert isinstance(value, tuple)  # noqa: S101 - the type of this question's answer
        return [
            Row(f"{fact.group:7} {fact.what:22} {fact.value}", "bold" if fact.group == "alarm" else "", fact)
            for fact in value
        ]

    def detail(self, row: Row) -> Sequence[str]:
        if not isinstance(row.subject, Fact):
            return (row.text,)
        fact = row.subject
        return (f"{fact.group}: {fact.what}", fact.value, f"read from {fact.source or 'the same place'}")
