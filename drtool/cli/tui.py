"""`drtool tui`, and `drtool` alone."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from pathlib import Path

import click

from drtool.cli._types import ANY_PATH, Moment
from drtool.core.errors import UsageError

ALTERNATE_SCREEN_OFF = "\x1b[?1049l\x1b[?25h\x1b[0m"


@click.command(epilog="Example: drtool tui --root /mnt/cp-1")
@click.option(
    "--root",
    "roots",
    type=ANY_PATH,
    multiple=True,
    help="A node's tree or unpacked bundle.",
)
@click.option("--at", type=Moment(), help="Judge as of this time.")
@click.option("--from", "source", default="", help="What the Objects screen browses: a backup, a file, a directory.")
def command(roots: tuple[Path, ...] = (), at: datetime | None = None, source: str = "") -> int:
    """Open the terminal UI: causes first, then checks, certificates, etcd, Pods, backups. Starts read-only."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the terminal UI needs a terminal", "use `drtool check` in scripts and pipes")
    os.environ.setdefault("TEXTUAL_FPS", "10")
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
    from drtool.host.root import Root
    from tui.glance import first_glance

    places = [Root(root.resolve()) for root in roots or (Path("/"),)]
    with first_glance(places[0], at) as glance:  # begun before Textual is loaded
        from tui.app import DrtoolApp

        app = DrtoolApp(places, at, source, {"glance": glance})
        try:
            app.run(mouse=False)
        finally:
            if sys.stdout.isatty():
                sys.stdout.write(ALTERNATE_SCREEN_OFF)
                sys.stdout.flush()
    return app.return_code or 0
