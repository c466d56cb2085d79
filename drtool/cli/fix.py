"""`drtool fix`"""

from __future__ import annotations

from typing import Any

import click

from drtool.cli._plan import Answers, plan_options, present


@click.command(epilog="Example: drtool fix cert-expired --apply")
@click.argument("name", metavar="[ID]", default="")
@click.option("--at", default="", metavar="TIME", help="Judge by this moment (RFC 3339) instead of now.")
@plan_options
def command(name: str, at: str, output: str, **options: Any) -> None:
    """The plan that fixes a finding; without ID, every root cause.

    Only what has one right answer is fixed. For the rest the plan says what to decide.
    """
    from datetime import datetime

    from drtool.commands import fix
    from drtool.core.errors import UsageError
    from drtool.host.root import Root

    answers = Answers(**options)
    try:
        moment = datetime.fromisoformat(at) if at else None
    except ValueError as wrong:
        raise UsageError(f"--at {at} is no time", "as in 2026-12-15T00:00:00Z") from wrong
    plan = fix.plan(Root(answers.root), name, moment)
    present(plan, answers, output, f"drtool fix {name + ' ' if name else ''}--apply")
