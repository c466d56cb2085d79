"""`drtool addresses`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from drtool.cli._output import emit, output_option, visible
from drtool.cli._types import ANY_PATH
from drtool.core.errors import UsageError
from drtool.host.root import Root

if TYPE_CHECKING:
    from drtool.commands.addresses import Judgement
    from manifests.network.ranges import Capacity, Clash

CLASH = 4


@click.command(epilog="Example: drtool addresses --nodes 50 --pods 110   or   drtool addresses --check-plan plan.yaml")
@click.option(
    "--root",
    type=ANY_PATH,
    default=Path("/"),
    help="A node's tree or unpacked bundle.",
)
@click.option(
    "--check-plan",
    "plan",
    type=ANY_PATH,
    metavar="FILE",
    help="A layout on paper, YAML.",
)
@click.option("--nodes", type=click.IntRange(1, 5000), help="Propose a layout for so many nodes,")
@click.option("--pods", type=click.IntRange(1, 1000), help="with so many Pods each.")
@click.option("--dual-stack", is_flag=True, help="With IPv6 ranges too.")
@output_option
def command(root: Path, plan: Path | None, nodes: int | None, pods: int | None, dual_stack: bool, output: str) -> int:
    """Judge address ranges for overlap, count the nodes and Pods that fit, or propose a layout.

    Exit status 4 where ranges collide or one is refused.
    """
    from drtool.commands.addresses import as_data, judge_node, judge_plan, proposed

    if plan is not None and nodes is not None:
        raise UsageError("--check-plan judges a layout and --nodes proposes one: give one of them")
    if (nodes is None) != (pods is None):
        raise UsageError("--nodes and --pods go together", "say how many Pods each node is to run")
    if plan is not None:
        found = judge_plan(plan)
    elif nodes is not None and pods is not None:
        found = proposed(nodes, pods, Root(root.resolve()), dual_stack)
    else:
        found = judge_node(Root(root.resolve()))
    emit(as_data(found), output, lambda: as_text(found))
    return 0 if found.good else CLASH


def as_text(found: Judgement) -> str:
    lines = [f"{one.what:9} {one.network!s:24} {visible(one.source)}" for one in found.layout.all]
    lines += [_clash(clash) for clash in found.clashes]
    lines += [f"PROBLEM: {problem.range.what} {problem.range.network}: {problem.why}" for problem in found.problems]
    lines += [_capacity(one) for one in found.capacities]
    for judged in found.network:
        lines.append(f"NETWORK [{judged.severity}] {visible(judged.finding.title)} ({judged.id})")
        lines += [f"         {visible(str(evidence))}" for evidence in judged.finding.evidence]
    lines += [f"not seen: {visible(what)}" for what in found.unseen]
    return "\n".join(lines)


def _clash(clash: Clash) -> str:
    first, second = clash.first, clash.second
    return f"OVERLAP: {first.what} {first.network} and {second.what} {second.network}"


def _capacity(one: Capacity) -> str:
    node = f"{_count(one.addresses_per_node)} addresses and {one.pods_per_node} Pods a node ({one.binds} binds)"
    return f"{one.pods.network}: {one.nodes} nodes with a /{one.block} each, {node}, {_count(one.total)} Pods in all"


def _count(number: int) -> str:
    return f"2^{number.bit_length() - 1}" if number > 10**9 else str(number)
