"""`drtool readdress`"""

from __future__ import annotations

from typing import Any

import click

from drtool.cli._plan import Answers, plan_options, present


@click.command(epilog="Example: drtool readdress --to 192.0.2.120 --apply")
@click.option(
    "--to", default="", metavar="IP", help="The address this node has now; found where only one can be meant."
)
@plan_options
def command(to: str, output: str, **options: Any) -> None:
    """The plan after this node's address changed.

    It covers manifests, probes, certificates, kubeconfigs, /etc/hosts, etcd's member URL and the cluster's ConfigMaps.
    """
    from drtool.commands import readdress
    from drtool.host.root import Root

    answers = Answers(**options)
    plan = readdress.plan(Root(answers.root), to)
    present(plan, answers, output, f"drtool readdress {f'--to {to} ' if to else ''}--apply")
