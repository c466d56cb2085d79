"""Judges a cluster's address ranges, counts what fits, and proposes a layout; each answer says where it was read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from drtool.commands.check import check
from drtool.core.causes import Judged
from drtool.core.check import EvidenceMissing
from drtool.core.errors import UsageError
from drtool.core.report import Severity, Status
from drtool.host.root import Root
from manifests.document import Document, Unparsable, parse
from manifests.network.ranges import Capacity, Clash, Layout, Problem, Range, capacities, clashes, problems, propose
from manifests.network.routes import host_networks
from manifests.node import Node, read
from manifests.pod import Component

MAX_PLAN = 1 << 20
NETWORK = (
    "hostport-without-portmap",
    "bandwidth-without-plugin",
    "cni-version-too-old",
    "podcidr-missing",
    "podcidr-duplicate",
    "podcidr-outside",
    "pods-exceed-podcidr",
)
PLAN = "pods, services and nodes (lists of ranges), others, nodeMask, nodeMaskIPv6, maxPods, nodeCount"


@dataclass(frozen=True, slots=True)
class Judgement:
    """`network` is what the checks found that weigh the conflist and the nodes' ranges against the Pods.

    `unseen` lists what could not be read, and so was not judged.
    """

    layout: Layout
    clashes: tuple[Clash, ...]
    problems: tuple[Problem, ...]
    capacities: tuple[Capacity, ...]
    network: tuple[Judged, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        broken = any(judged.severity >= Severity.ERROR for judged in self.network)
        return not self.clashes and not self.problems and not broken


def judge_node(root: Root) -> Judgement:
    """The ranges of the cluster that the node below `root` belongs to, and of this host's own routes."""
    report = check(root, probe=False)
    layout, unseen = _of_node(report.node)
    gaps = (one for one in report.outcomes if one.id in NETWORK and one.status is Status.UNKNOWN)
    unseen += tuple(f"{one.id}: {one.reason}" for one in gaps)
    return replace(judged(layout, unseen), network=tuple(j for j in report.verdict.findings if j.id in NETWORK))


def judge_plan(path: Path) -> Judgement:
    """A layout on paper: YAML. Raises UsageError with the line."""
    return judged(_of_plan(path), ())


def judged(layout: Layout, unseen: tuple[str, ...]) -> Judgement:
    return Judgement(layout, clashes(layout.all), problems(layout), capacities(layout), unseen=unseen)


def proposed(nodes: int, pods: int, root: Root, dual_stack: bool) -> Judgement:
    """A layout clear of the networks that this host knows. Raises UsageError where none is left."""
    try:
        avoid = tuple(network for network, _ in host_networks(read(root)))
    except EvidenceMissing:
        avoid = ()
    layout = propose(nodes, pods, avoid, dual_stack)
    if layout is None:
        raise UsageError(f"no private range is left for {nodes} nodes with {pods} Pods each")
    return judged(layout, () if avoid else ("the host's own routes: give --root, or judge with --check-plan",))


def _of_node(node: Node) -> tuple[Layout, tuple[str, ...]]:
    unseen: list[str] = []
    pods = tuple(_flag_ranges(node, "kube-controller-manager", "cluster-cidr", "Pods", unseen))
    services = tuple(_flag_ranges(node, "kube-apiserver", "service-cluster-ip-range", "Services", unseen))
    try:
        nodes = tuple(Range("nodes", network, str(evidence)) for network, evidence in host_networks(node))
    except EvidenceMissing as gap:
        nodes = ()
        unseen.append(str(gap))
    manager = node.components.get("kube-controller-manager")
    layout = Layout(
        pods,
        services,
        nodes,
        block_ipv4=_mask(manager, ("node-cidr-mask-size-ipv4", "node-cidr-mask-size"), 24),
        block_ipv6=_mask(manager, ("node-cidr-mask-size-ipv6",), 64),
        max_pods=_max_pods(node, unseen),
    )
    return layout, tuple(unseen)


def _flag_ranges(node: Node, program: str, flag: str, what: str, unseen: list[str]) -> Iterator[Range]:
    component = node.components.get(program)
    if component is None or not component.has(flag):
        unseen.append(f"the range of {what}: no --{flag} of {program}")
        return
    found = component.flag(flag)
    for part in found.value.split(","):
        try:
            yield Range(what, ip_network(part.strip(), strict=False), str(found.evidence))
        except ValueError:
            unseen.append(f"{part} in {found.evidence} is no range")


def _mask(manager: Component | None, names: tuple[str, ...], default: int) -> int:
    for name in names:
        if manager is not None and manager.has(name) and manager.value(name).isdecimal():
            return int(manager.value(name))
    return default


def _max_pods(node: Node, unseen: list[str]) -> int:
    value, _ = node.kubelet.setting("max-pods", "maxPods", default=None)
    if value is None:
        if node.kubelet.config is None:
            unseen.append("the kubelet's maxPods: its configuration is not in this tree, 110 is its default")
        return 110
    return int(value) if str(value).isdecimal() else 110


def _of_plan(path: Path) -> Layout:
    try:
        with path.open("rb") as file:
            document = parse(str(path), file.read(MAX_PLAN + 1))[0]
    except OSError as gone:
        raise UsageError(f"{path}: {gone.strerror}", f"a plan is YAML with {PLAN}") from gone
    except (Unparsable, IndexError) as wrong:
        raise UsageError(str(wrong), f"a plan is YAML with {PLAN}") from wrong
    known = {"pods", "services", "nodes", "others", "nodeMask", "nodeMaskIPv6", "maxPods", "nodeCount"}
    unknown = set(document.data) - known if isinstance(document.data, dict) else {"no mapping"}
    if unknown:
        raise UsageError(f"{path}: unknown: {', '.join(sorted(map(str, unknown)))}", f"a plan has {PLAN}")
    return Layout(
        tuple(_plan_ranges(document, "pods", "Pods")),
        tuple(_plan_ranges(document, "services", "Services")),
        tuple(_plan_ranges(document, "nodes", "nodes")),
        tuple(_plan_ranges(document, "others", "others")),
        block_ipv4=_number(document, "nodeMask", 24),
        block_ipv6=_number(document, "nodeMaskIPv6", 64),
        max_pods=_number(document, "maxPods", 110),
        node_count=_number(document, "nodeCount", 0),
    )


def _plan_ranges(document: Document, key: str, what: str) -> Iterator[Range]:
    values = document.get(key, default=[])
    for index, text in enumerate(values if isinstance(values, list) else [values]):
        where = document.evidence(key, index) if isinstance(values, list) else document.evidence(key)
        try:
            yield Range(what, ip_network(str(text).strip(), strict=False), str(where))
        except ValueError as wrong:
            raise UsageError(f"{where.path}:{where.line}: {text} is no range such as 10.244.0.0/16") from wrong


def _number(document: Document, key: str, default: int) -> int:
    value = document.get(key, default=default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        where = document.evidence(key)
        raise UsageError(f"{where.path}:{where.line}: {key} is a whole number, not {value}")
    return value


def as_data(found: Judgement) -> dict[str, Any]:
    layout = found.layout
    return {
        "schemaVersion": 1,
        "good": found.good,
        "ranges": [_range(one) for one in layout.all],
        "clashes": [{"first": _range(one.first), "second": _range(one.second)} for one in found.clashes],
        "problems": [{"range": _range(one.range), "why": one.why} for one in found.problems],
        "capacities": [
            {
                "range": str(one.pods.network),
                "nodeMask": one.block,
                "nodes": one.nodes,
                "addressesPerNode": one.addresses_per_node,
                "maxPods": layout.max_pods,
                "podsPerNode": one.pods_per_node,
                "pods": one.total,
                "binds": one.binds,
            }
            for one in found.capacities
        ],
        "network": [
            {
                "id": one.id,
                "severity": str(one.severity),
                "title": one.finding.title,
                "evidence": [str(evidence) for evidence in one.finding.evidence],
            }
            for one in found.network
        ],
        "notSeen": list(found.unseen),
    }


def _range(one: Range) -> dict[str, str]:
    return {"what": one.what, "network": str(one.network), "from": one.source}
