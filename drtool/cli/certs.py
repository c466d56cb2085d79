"""`drtool certs`"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from drtool.cli._output import columns, emit, output_option
from drtool.cli._types import ANY_PATH, Moment
from drtool.commands.certs import Inventory, as_data, certs, state
from drtool.commands.tree import opened
from drtool.commands.unread import cannot_tell


@click.command(epilog="Example: drtool certs --root /mnt/cp-1 -o json")
@click.option("--root", type=ANY_PATH, default=Path("/"), help="A node's tree or bundle.")
@click.option("--at", type=Moment(), help="Judge as of this time; else when the bundle was taken, else now.")
@output_option
def command(root: Path, at: datetime | None, output: str) -> None:
    """List every certificate and kubeconfig credential: subject, names, issuer, expiry, who reads it."""
    with opened(root) as tree:
        inventory = certs(tree, at)
    emit(as_data(inventory), output, lambda: _table(inventory))
    if inventory.unread is not None:
        raise cannot_tell(root, inventory.unread)


def _table(inventory: Inventory) -> str:
    rows = []
    for row in inventory.rows:
        certificate = row.certificate
        left = (certificate.not_after - inventory.node.at).days
        status = state(inventory.node, certificate)
        expires = f"{certificate.not_after:%Y-%m-%d} ({f'{left} days' if status == 'valid' else status})"
        names = ", ".join(certificate.names()) or "-"
        readers = ", ".join(row.readers) or "nobody"
        rows.append((certificate.path, certificate.subject, certificate.issuer, expires, readers, names))
    return columns(("FILE", "SUBJECT", "ISSUER", "EXPIRES", "READ BY", "NAMES"), rows)
