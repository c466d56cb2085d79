"""A node's etcd put back from a backup whose data directory was made before anything was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.errors import CannotTell
from drtool.plans import site
from drtool.plans.site import Draft, NodeStep
from manifests.node import Node
from manifests.pod import Component
from manifests.steps.cluster import WaitForApiserver
from manifests.steps.putting import PutFile, PutStaticPod
from manifests.steps.running import ParkStaticPod, RestartContainers, RestartKubelet, UnparkStaticPod
from snapshots.steps.data import ClearMasterLeases, CompareCounts, SwapDataDir, WaitForEtcd

PASSING = ("/registry/masterleases/", "/registry/events/", "/registry/peerserverleases/")
CACHES = ("kube-controller-manager", "kube-scheduler")
ALONE, JOINING = 240.0, 900.0


def prepared(node: Node, plan: str) -> str:
    """Where the new data directory is made: inside the old one, so that a rename is enough, mount point or not."""
    return f"{_own(node, plan)}/new"


def _own(node: Node, plan: str) -> str:
    return f"{site.data_dir(need_etcd(node))}/.drtool-{plan}"


def swap(node: Node, plan: str, emptied: bool = False) -> SwapDataDir:
    return SwapDataDir(site.data_dir(need_etcd(node)), prepared(node, plan), f"{_own(node, plan)}/old", emptied)


def need_etcd(node: Node) -> Component:
    try:
        return node.etcd
    except EvidenceMissing as gap:
        raise CannotTell(f"the node cannot be read well enough for a plan: {gap}") from gap
    except NotApplicable as none:
        raise CannotTell("this node runs no etcd as a static Pod", "run it on a node with etcd's manifest") from none


def restore(
    node: Node,
    plan: str,
    title: str,
    counts: dict[str, int],
    members: tuple[str, ...] = (),
    lost: tuple[PutFile, ...] = (),
) -> Draft:
    """`counts` are the record's keys per prefix (none for a file); `members` the names of all that are restored.

    `lost` are files that the node has no more; `node` is as it will be once they are back.
    """
    access = site.etcd_access(node)
    # the empty prefix is the mark of an earlier restore's bump, which no request can name
    known = {prefix: count for prefix, count in counts.items() if prefix and prefix.isascii()}
    told = tuple((prefix, count) for prefix, count in known.items() if prefix not in PASSING)
    up: list[NodeStep] = [WaitForEtcd(access, JOINING if len(members) > 1 else ALONE, without_alarm=True)]
    up += [CompareCounts(access, told)] if told and len(members) < 2 else []
    up += [ClearMasterLeases(access)]
    return Draft("restore", title, (*around(node, plan, (swap(node, plan),), tuple(up), lost),))


def around(
    node: Node, plan: str, down: tuple[NodeStep, ...], up: tuple[NodeStep, ...], lost: tuple[PutFile, ...] = ()
) -> Iterator[NodeStep]:
    """`down` while etcd and the API server are stopped, `up` once etcd runs again, then everything else anew.

    Of `lost` files manifests come last, each when its program may start.
    """
    etcd, apiserver = need_etcd(node), site.present(node, "kube-apiserver")
    manifests = {one.path: one for one in lost if one.path.startswith(f"{node.manifests_directory}/")}
    for component in (apiserver, etcd):
        if component and component.path not in manifests:
            yield _park(component, plan)
    yield from (one for one in lost if one.path not in manifests)
    yield from down
    yield _start(etcd, plan, manifests)
    if lost:
        yield RestartKubelet("what it was configured with is back")
    yield from up
    if apiserver:
        yield _start(apiserver, plan, manifests)
        yield from (one for path, one in manifests.items() if path not in (etcd.path, apiserver.path))
        yield WaitForApiserver(site.own_server(node))
        yield RestartContainers(CACHES, "what they remember is of the time before")
        yield RestartKubelet("so that it asks for everything anew")


def _park(component: Component, plan: str) -> ParkStaticPod:
    return ParkStaticPod(site.program(component), component.path, parking(component.path, plan))


def _start(component: Component, plan: str, manifests: dict[str, PutFile]) -> NodeStep:
    if component.path in manifests:
        return PutStaticPod(site.program(component), manifests[component.path])
    return _unpark(component, plan)


def _unpark(component: Component, plan: str) -> UnparkStaticPod:
    return UnparkStaticPod(site.program(component), component.path, parking(component.path, plan))


def parking(path: str, plan: str) -> str:
    """Beside the manifests directory: on the same file system, and out of the kubelet's sight."""
    manifest = PurePosixPath(path)
    return str(manifest.parent.parent / f"drtool-{plan}" / manifest.name)
