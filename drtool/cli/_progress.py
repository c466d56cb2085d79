"""Progress on a terminal, or as lines where they are asked for; nothing otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from drtool.core.events import Listener, Progress, silent

LINE_EVERY = 5.0


@contextmanager
def shown(lines: bool = False) -> Iterator[Listener]:
    """On stderr: one line that is rewritten on a TTY, else with `lines` a line every few seconds and per phase."""
    if sys.stderr.isatty():
        yield _rewrite
        click.echo("\r\x1b[K", nl=False, err=True)
    elif lines:
        yield _Lines()
    else:
        yield silent


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def _text(now: Progress) -> str:
    done, total = (size(now.done), size(now.total or 0)) if now.unit == "bytes" else (str(now.done), str(now.total))
    return f"{now.phase}: {done} of {total}" if now.total else f"{now.phase}: {done}"


def _rewrite(now: Progress) -> None:
    click.echo(f"\r\x1b[K{_text(now)}", nl=False, err=True)


class _Lines:
    def __init__(self) -> None:
        self._phase = ""
        self._last = 0.0

    def __call__(self, now: Progress) -> None:
        if now.phase != self._phase or time.monotonic() - self._last > LINE_EVERY:
            self._phase, self._last = now.phase, time.monotonic()
            click.echo(_text(now), err=True)
