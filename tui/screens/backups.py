"""What the store holds, newest first, with what was verified and drilled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from drtool.core.errors import DrtoolError
from snapshots.catalog import Backup
from snapshots.inventory import Inventory
from tui.screens.listing import Listing
from tui.widgets.rows import Row


class Backups(Listing):
    NAME = "Backups"
    QUESTION = "backups"
    KEYS = (("t", "take"), ("v", "verify"), ("d", "drill"), ("P", "prune plan"), ("o", "objects"))
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "take", "take a backup"),
        Binding("v", "run_on('verify')", "verify this one"),
        Binding("d", "run_on('drill')", "drill this one"),
        Binding("P", "run('prune --dry-run')", "what retention would remove"),
        Binding("o", "browse", "browse its objects"),
        Binding("R", "restore", "plan to restore this node from it"),
    ]

    def rows(self, value: object) -> Sequence[Row]:
        assert isinstance(value, Inventory)  # noqa: S101 - the type of this question's answer
        found = [_row(backup) for backup in value.backups]
        return [*found, *(Row(f"cannot be believed: {path}: {_why(wrong)}", "bold") for path, wrong in value.broken)]

    def detail(self, row: Row) -> Sequence[str]:
        if not isinstance(row.subject, Backup):
            return (row.text,)
        record = row.subject.record
        return (
            f"{record.id}  cluster {record.cluster_id}  node {record.node}",
            f"taken {record.taken_at:%Y-%m-%d %H:%M:%S} UTC from {record.endpoint}",
            f"etcd {record.etcd}, Kubernetes {record.kubernetes or 'not known'}",
            f"revision {record.revision}, raft index {record.raft_index}, {record.keys} keys",
            f"sealed for: {', '.join(record.sealed_for) or 'nobody: NOT encrypted'}",
            f"signed: {'yes' if row.subject.signed else 'no'}",
            *(f"incomplete: {what}" for what in record.incomplete),
            *(f"{r.kind} {r.at:%Y-%m-%d %H:%M}: {'good' if r.good else 'BAD'}" for r in row.subject.reports),
        )

    def nothing(self) -> str:
        return "the store holds no backup: t takes one"

    def action_take(self) -> None:
        self.drtool.run_command(self.drtool.here("backup"))

    def action_run(self, words: str) -> None:
        self.drtool.run_command(words)

    def action_run_on(self, words: str) -> None:
        if isinstance(backup := self.current(), Backup):
            self.drtool.run_command(f"{words} {backup.id}")

    def action_restore(self) -> None:
        if isinstance(backup := self.current(), Backup):
            self.drtool.plan(f"restore --node {backup.id}")

    def action_browse(self) -> None:
        if isinstance(backup := self.current(), Backup):
            self.drtool.browse(backup.id)


def _row(backup: Backup) -> Row:
    record = backup.record
    drill = backup.last("drill")
    proof = "good" if backup.good else "NOT VERIFIED"
    drilled = f"drilled {drill.at:%Y-%m-%d}" if drill else "never drilled"
    text = f"{record.id:30} {record.node:10} {record.keys:>7} keys  {proof}, {drilled}"
    return Row(text, "" if backup.good else "bold", backup)


def _why(wrong: DrtoolError) -> str:
    return wrong.what
