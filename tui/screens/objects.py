"""Objects of this node's db, or of a backup: kinds, then objects, then one object as YAML."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from drtool.commands.ls import Kind
from drtool.core.errors import DrtoolError
from snapshots.registry.keys import Place
from tui.browsing import OWN_DATA, Browser
from tui.screens.listing import Listing
from tui.widgets.rows import Row, Rows


class Objects(Listing):
    NAME = "Objects"
    QUESTION = "objects"
    KEYS = (("u", "undelete"), ("d", "diff"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "undelete", "write the YAML that kubectl apply takes"),
        Binding("d", "diff", "compare this kind and namespace with the running cluster"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.kind: Kind | None = None

    def rows(self, value: object) -> Sequence[Row]:
        assert isinstance(value, Browser)  # noqa: S101 - the type of this question's answer
        if self.kind is None:
            return [Row(f"{kind.resource.full_name:56} {kind.objects:>7}", "", kind) for kind in value.kinds()]
        found = value.objects(self.kind.resource)
        return [Row(f"{place.namespace:24} {place.name}".strip(), "", (resource, place)) for resource, place in found]

    def detail(self, row: Row) -> Sequence[str]:
        browser = self.drtool.session.known(self.QUESTION).value
        if not isinstance(browser, Browser) or not isinstance(row.subject, tuple) or self.kind is None:
            return (row.text,)
        try:
            return browser.lines(*row.subject)
        except DrtoolError as error:
            return (error.what, error.hint)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        if self.kind is None and event.row is not None and isinstance(event.row.subject, Kind):
            event.stop()
            self.kind = event.row.subject
            self.filter("")  # it was about kinds
            self.update()
            return
        super().on_rows_chosen(event)

    def action_back(self) -> None:
        rows = self.query_one("#rows", Rows)
        closed = not self.query_one("#detail").has_class("open") and not self.query_one("#line").has_class("open")
        if self.kind is not None and closed and not rows.wanted:
            self.kind = None
            self.update()
            return
        super().action_back()

    def action_undelete(self) -> None:
        subject = self.current()
        if self.kind is not None and isinstance(subject, tuple):
            resource, place = subject
            self.drtool.run_command(
                f"undelete {resource.full_name} {place.name} {_space(place)}--from {self._source()}"
            )

    def action_diff(self) -> None:
        subject = self.current()
        if self.kind is not None and isinstance(subject, tuple):
            resource, place = subject
            words = f"diff -k {resource.full_name} {_space(place)}{self._source()} live"
            self.drtool.run_command(self.drtool.here(words))

    def _source(self) -> str:
        return shlex.quote(self.drtool.source or str(self.drtool.root.locate(OWN_DATA)))


def _space(place: Place) -> str:
    return f"-n {place.namespace} " if place.namespace else ""
