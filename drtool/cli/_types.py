"""Types of what is given on the command line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

ANY_PATH = click.Path(readable=False, path_type=Path)
"""Whether it may be read is for the command to say, with an exit status that tells it from wrong usage."""


class Moment(click.ParamType[datetime]):
    """A time as ISO 8601; UTC where it names no zone."""

    name = "TIME"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(str(value))
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value} is no time such as 2026-12-15T00:00:00Z", param, ctx)
