"""`drtool fix`"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from drtool.cli._plan import Answers, plan_options, present
from drtool.cli._types import Moment


@click.command(epilog="Example: drtool fix cert-expired --apply")
@click.argument("name", metavar="[ID]", default="")
@click.option("--at", type=Moment(), help="Judge as of this time instead of now.")
@plan_options
def command(name: str, at: datetime | None, output: str, **options: Any) -> None:
    """The plan that fixes a finding; without ID, every root cause.

    Only what has one right answer is fixed. For the rest the plan says what to decide.
    """
    from drtool.commands import fix
    from drtool.host.root import Root

    answers = Answers(**options)
    plan = fix.plan(Root(answers.root), name, at)
    present(plan, answers, output, f"drtool fix {name + ' ' if name else ''}--apply")
