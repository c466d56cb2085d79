"""Certificates and kubeconfig credentials by expiry, nearest first, with who reads each."""

from __future__ import annotations

from collections.abc import Sequence

from drtool.commands.certs import Inventory, state
from drtool.commands.certs import Row as Record
from tui.screens.listing import Listing
from tui.widgets.rows import Row

WEEK, WIDTH = 7, 20
YEAR = 52


class Certificates(Listing):
    NAME = "Certificates"
    QUESTION = "certificates"

    def rows(self, value: object) -> Sequence[Row]:
        assert isinstance(value, Inventory)  # noqa: S101 - the type of this question's answer
        ordered = sorted(value.rows, key=lambda record: record.certificate.not_after)
        return [_row(value, record) for record in ordered]

    def detail(self, row: Row) -> Sequence[str]:
        if not isinstance(row.subject, Record):
            return (row.text,)
        certificate = row.subject.certificate
        return (
            f"{certificate.path}:{certificate.line or 1}",
            f"{row.subject.role}: {certificate.subject}",
            f"issued by {certificate.issuer}",
            f"valid from {certificate.not_before:%Y-%m-%d %H:%M} to {certificate.not_after:%Y-%m-%d %H:%M} UTC",
            f"names: {', '.join(certificate.names()) or 'none'}",
            f"read by: {', '.join(row.subject.readers) or 'nothing here'}",
            f"sha256 {certificate.fingerprint}",
        )


def _row(inventory: Inventory, record: Record) -> Row:
    node, certificate = inventory.node, record.certificate
    days = (certificate.not_after - node.at).days
    now = state(node, certificate)
    words = f"{days} d" if now == "valid" else now.upper()
    bar = ("=" * max(0, min(WIDTH, days // WEEK * WIDTH // YEAR))).ljust(WIDTH)
    text = f"{certificate.not_after:%Y-%m-%d} {words:>13} |{bar}| {record.role}  {certificate.path}"
    return Row(text, "bold" if now != "valid" or days < 30 else "", record)
