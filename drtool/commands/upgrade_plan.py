"""The steps from one minor to the next under the version skew policy, from what the nodes and the db really hold.

kubeadm's own order, on paper: nothing is changed. Every state between two steps is checked against the policy. What
could not be seen is listed, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drtool.commands.check import cases, data
from drtool.commands.objects_at_hand import objects
from drtool.commands.upgrade_risks import Blocked, blocked_drains, cluster_risks, node_risks
from drtool.core.errors import CannotTell, Refused, UsageError
from drtool.core.skew import State, violations
from drtool.host.root import Root
from manifests.node import Node, read
from manifests.pod import version
from manifests.releases import apis
from snapshots.registry.cluster import Cluster

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Step:
    """`leaves` is what the policy says of the state after it: empty for a supported one."""

    node: str
    what: str
    commands: tuple[str, ...]
    restarts: str = ""
    blocked: tuple[Blocked, ...] = ()
    leaves: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cast:
    """Who takes part: control planes first, in the order to upgrade, then workers; versions by node."""

    control_planes: tuple[str, ...]
    workers: tuple[str, ...]
    state: State
    sources: Mapping[str, str]


@dataclass(frozen=True)
class UpgradePlan:
    """`risks` are what the target no longer knows and what would stop the upgrade; `unseen` what was not to be had."""

    current: str
    target: str
    cast: Cast
    steps: tuple[Step, ...]
    risks: tuple[str, ...]
    unseen: tuple[str, ...] = field(default=())


def upgrade_plan(roots: Sequence[Root], to: str) -> UpgradePlan:
    """Raises Refused for a skipped minor or a state that is unsupported already, CannotTell without an API server."""
    target, patch = _target(to)
    nodes = [read(root) for root in roots]
    stored = data(roots[0], nodes[0])
    with objects(roots[0], cases(nodes, [stored] * len(nodes))[0].node, stored) as found:
        cluster = None if isinstance(found, str) else found
        unseen = [] if cluster else [f"the cluster's objects ({found}): workers, PodDisruptionBudgets, stored versions"]
        cast = _cast(nodes, cluster, unseen)
        current = max(cast.state.apiservers.values())
        _refuse(cast, current, target)
        drains = blocked_drains(cluster) if cluster else {}
        risks = [risk for node in nodes for risk in node_risks(node, target)]
        risks += cluster_risks(cluster, current, target) if cluster else []
    steps = tuple(_steps(cast, target, patch, drains, nodes))
    return UpgradePlan(f"1.{current}", to, cast, steps, tuple(dict.fromkeys(risks)), tuple(unseen))


def _target(text: str) -> tuple[int, str]:
    numbers = text.removeprefix("v").split(".")
    if len(numbers) not in {2, 3} or numbers[0] != "1" or not all(number.isdecimal() for number in numbers):
        raise UsageError(f"{text} is no Kubernetes version", "write 1.37 or 1.37.2")
    minor = int(numbers[1])
    if minor > apis.newest_minor():
        raise UsageError(f"1.{minor} is newer than what this drtool knows (1.{apis.newest_minor()})", "update drtool")
    return minor, f"v1.{minor}.{numbers[2] if len(numbers) == 3 else 'PATCH'}"


def _cast(nodes: Sequence[Node], cluster: Cluster | None, unseen: list[str]) -> Cast:
    servers: dict[str, int] = {}
    controllers: dict[str, int] = {}
    schedulers: dict[str, int] = {}
    kubelets: dict[str, int] = {}
    sources: dict[str, str] = {}
    into = {"kube-apiserver": servers, "kube-controller-manager": controllers, "kube-scheduler": schedulers}
    for node in nodes:
        for program, found in into.items():
            component = node.components.get(program)
            if component is not None and component.version is not None:
                found[node.name] = component.version[1]
                sources[f"{program} on {node.name}"] = str(component.image_evidence)
        if node.kubelet.version is not None:
            kubelets[node.name] = node.kubelet.version[1]
            sources[f"kubelet on {node.name}"] = str(node.kubelet.version_evidence or "")
    proxy = _from_db(cluster, servers, controllers, schedulers, kubelets, sources) if cluster else None
    if not servers:
        raise CannotTell("no API server's version is known", "give the tree of a control-plane node with --root")
    unseen += [f"the kubelet's version on {name}" for name in servers if name not in kubelets]
    if proxy is None:
        unseen.append("kube-proxy's version")
    state = State(servers, controllers, schedulers, kubelets, proxy)
    workers = tuple(sorted(name for name in kubelets if name not in servers))
    return Cast(tuple(sorted(servers, key=lambda name: (-servers[name], name))), workers, state, sources)


def _from_db(
    cluster: Cluster,
    servers: dict[str, int],
    controllers: dict[str, int],
    schedulers: dict[str, int],
    kubelets: dict[str, int],
    sources: dict[str, str],
) -> int | None:
    """Fills in the nodes that no tree was given for; the minor of kube-proxy where it is known."""
    into = {"kube-apiserver": servers, "kube-controller-manager": controllers, "kube-scheduler": schedulers}
    for program, found in into.items():
        for pod in cluster.components(program):
            node, minor = str(pod.at("spec", "nodeName")), _image_minor(pod.at("spec", "containers", 0, "image"))
            if node not in found and minor is not None:
                found[node] = minor
                sources[f"{program} on {node}"] = str(pod)
    for each in cluster.nodes():
        told = version(str(each.at("status", "nodeInfo", "kubeletVersion")))
        if each.name not in kubelets and told is not None:
            kubelets[each.name] = told[1]
            sources[f"kubelet on {each.name}"] = str(each)
    for each in cluster.all("DaemonSet"):
        if each.name == "kube-proxy" and each.namespace == "kube-system":
            sources["kube-proxy"] = str(each)
            return _image_minor(each.at("spec", "template", "spec", "containers", 0, "image"))
    return None


def _image_minor(image: object) -> int | None:
    found = version(str(image).rpartition(":")[2])
    return found[1] if found else None


def _refuse(cast: Cast, current: int, target: int) -> None:
    oldest = min(cast.state.apiservers.values())
    if target < current:
        raise Refused(
            f"the cluster runs 1.{current}: kubeadm does not go back to 1.{target}", "restore a backup instead"
        )
    if target - oldest > 1:
        raise Refused(
            f"from 1.{oldest} to 1.{target} skips a minor: API servers may only be one minor apart",
            f"plan 1.{oldest + 1} first",
        )
    wrong = violations(cast.state)
    if wrong:
        raise Refused(
            f"the cluster is outside the version skew policy already: {wrong[0]}", "bring it back inside first"
        )


def _steps(
    cast: Cast, target: int, patch: str, drains: Mapping[str, tuple[Blocked, ...]], nodes: Sequence[Node]
) -> Iterator[Step]:
    state = cast.state
    installs = {node.name: _installs(node, patch) for node in nodes}
    yield Step("-", "take a backup and prove it", ("drtool backup", "drtool drill"))
    if min(state.apiservers.values()) < target:
        yield Step(
            "-",
            f"bring 1.{min(state.apiservers.values())} to its newest patch first",
            ("kubeadm upgrade plan", f"kubeadm upgrade apply v1.{min(state.apiservers.values())}.PATCH"),
        )
    for number, name in enumerate(cast.control_planes):
        last = number == len(cast.control_planes) - 1
        state = _with_control_plane(state, name, target, last)
        commands = (
            _install(installs, name, patch, "kubeadm"),
            *((f"kubeadm upgrade plan {patch}", f"kubeadm upgrade apply {patch}") if number == 0 else ()),
            *(("kubeadm upgrade node",) if number else ()),
        )
        restarts = "etcd, kube-apiserver, kube-controller-manager, kube-scheduler; certificates are renewed"
        if last:
            restarts += "; kube-proxy and CoreDNS everywhere"
        yield Step(name, f"control plane to 1.{target}", commands, _etcd_part(nodes, name, target) + restarts,
                   leaves=violations(state))  # fmt: skip
    for name in (*cast.control_planes, *cast.workers):
        state = replace(state, kubelets={**state.kubelets, name: target})
        worker = name in cast.workers
        commands = (
            *((_install(installs, name, patch, "kubeadm"), "kubeadm upgrade node") if worker else ()),
            f"kubectl drain {name} --ignore-daemonsets",
            _install(installs, name, patch, "kubelet", "kubectl"),
            "systemctl daemon-reload && systemctl restart kubelet",
            f"kubectl uncordon {name}",
        )
        yield Step(name, f"kubelet to 1.{target}", commands, "kubelet; every Pod of the node moves away",
                   drains.get(name, ()), violations(state))  # fmt: skip


def _installs(node: Node, patch: str) -> str:
    """How this node's distribution installs a package at a version; "" where /etc/os-release does not tell."""
    wanted = patch.removeprefix("v").replace("PATCH", "*")
    told = (node.entry("/etc/os-release").data or b"").decode("utf-8", "replace")
    families = set(re.findall(r"\b(debian|ubuntu|rhel|fedora|centos|suse)\b", told))
    if families & {"debian", "ubuntu"}:
        return f"apt-get install --allow-change-held-packages -y {{}}='{wanted}-*'"
    return (
        f"dnf install --disableexcludes=kubernetes -y {{}}-'{wanted}-*'"
        if families & {"rhel", "fedora", "centos"}
        else ""
    )


def _install(installs: Mapping[str, str], name: str, patch: str, *packages: str) -> str:
    how = installs.get(name, "")
    if not how:
        return f"install {' and '.join(packages)} {patch}"
    return " && ".join(how.format(package) for package in packages)


def _with_control_plane(state: State, name: str, target: int, last: bool) -> State:
    return State(
        {**state.apiservers, name: target},
        {**state.controllers, name: target},
        {**state.schedulers, name: target},
        state.kubelets,
        target if last and state.proxy is not None else state.proxy,
    )


def _etcd_part(nodes: Sequence[Node], name: str, target: int) -> str:
    node = next((node for node in nodes if node.name == name), None)
    etcd = node.components.get("etcd") if node else None
    wanted = apis.etcd_image(target)
    if etcd is None or etcd.version is None or not wanted:
        return ""
    has = ".".join(map(str, etcd.version))
    return f"etcd {has} -> {wanted.partition('-')[0]}; " if not wanted.startswith(has) else ""


def as_data(plan: UpgradePlan) -> dict[str, Any]:
    state = plan.cast.state
    return {
        "schemaVersion": 1,
        "from": plan.current,
        "to": plan.target,
        "versions": {
            "apiServers": dict(state.apiservers),
            "controllerManagers": dict(state.controllers),
            "schedulers": dict(state.schedulers),
            "kubelets": dict(state.kubelets),
            "kubeProxy": state.proxy,
        },
        "sources": dict(plan.cast.sources),
        "steps": [
            {
                "number": number,
                "node": step.node,
                "what": step.what,
                "commands": list(step.commands),
                "restarts": step.restarts,
                "blockedBy": [{"budget": one.budget, "why": one.why} for one in step.blocked],
                "violations": list(step.leaves),
            }
            for number, step in enumerate(plan.steps, 1)
        ],
        "risks": list(plan.risks),
        "notSeen": list(plan.unseen),
    }
