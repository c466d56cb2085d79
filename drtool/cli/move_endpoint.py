"""`drtool move-endpoint`"""

from __future__ import annotations

from typing import Any

import click

from drtool.cli._plan import Answers, plan_options, present


@click.command(epilog="Example: drtool move-endpoint --to k8s.example.org:6443")
@click.option("--to", required=True, metavar="HOST:PORT", help="The new endpoint: a virtual address or a DNS name.")
@plan_options
def command(to: str, output: str, **options: Any) -> None:
    """The plan from one node's address to a virtual address or a DNS name, without an interruption.

    Run it on every control-plane node: the first time for the API servers' certificates, then once more for the
    cluster's ConfigMaps and each node's kubeconfigs. It says which half is due.
    """
    from drtool.commands import move_endpoint
    from drtool.host.root import Root

    answers = Answers(**options)
    plan = move_endpoint.plan(Root(answers.root), to)
    present(plan, answers, output, f"drtool move-endpoint --to {to} --apply")
