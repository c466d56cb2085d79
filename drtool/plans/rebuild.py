"""Quorum lost for good: the newest survivor becomes a cluster of one, and the others join it empty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.errors import Refused
from drtool.plans import site
from drtool.plans.restore import around, need_etcd, parking, prepared, swap
from drtool.plans.site import Draft, NodeStep
from manifests.editing import Edit, Insert, Set
from manifests.node import Node
from manifests.pod import Component
from manifests.steps.files import edit_yaml
from snapshots.steps.data import ClearMasterLeases, RebuildDataDir, WaitForEtcd
from snapshots.steps.members import AddMember, PromoteMember, RemoveMember


@dataclass(frozen=True, slots=True)
class Standing:
    """A member of the etcd that is joined; `id` in hex. `name` is empty for one that never started."""

    id: str
    name: str
    peer_urls: tuple[str, ...]


def rebuild(node: Node, plan: str, token: str, others: tuple[str, ...]) -> Draft:
    """`others` are the names of the members that are given up; they join again by `drtool restore --node --join`."""
    etcd = need_etcd(node)
    name, urls = etcd.value("name", "default"), etcd.names("initial-advertise-peer-urls")
    made = RebuildDataDir(site.data_dir(etcd), prepared(node, plan), name, urls, token)
    access = site.etcd_access(node)
    up: tuple[NodeStep, ...] = (WaitForEtcd(access), ClearMasterLeases(access))
    steps = tuple(around(node, plan, (made, swap(node, plan)), up))
    return Draft("rebuild", f"a new cluster of {name} alone, from its own data", steps, tuple(_then(node, others)))


def _then(node: Node, others: tuple[str, ...]) -> Iterator[str]:
    urls = need_etcd(node).names("advertise-client-urls")
    for name in others:
        yield f"on {name}, one after another: drtool restore --node --join {urls[0]} --apply"
    yield "never start a given-up member on its old data again: it belongs to a cluster that is no more"
    yield "restart the kubelet of every worker: systemctl restart kubelet"
    yield "take a backup at once: drtool backup"


def join(node: Node, plan: str, url: str, members: tuple[Standing, ...]) -> Draft:
    """This node's member emptied, and added to the etcd at `url` as a learner that becomes a voter."""
    etcd = need_etcd(node)
    name, urls = etcd.value("name", "default"), etcd.names("initial-advertise-peer-urls")
    mine = [one for one in members if one.name == name or set(one.peer_urls) & set(urls)]
    others = [one for one in members if one not in mine]
    if not others:
        raise Refused(f"the etcd at {url} has no member but this node itself", "name the client URL of another node")
    there, here = site.etcd_access(node, url), site.etcd_access(node)
    down: list[NodeStep] = [swap(node, plan, emptied=True)]
    down += [RemoveMember(there, one.id, one.name, one.peer_urls) for one in mine]
    down += [AddMember(there, name, urls), *_initial_cluster(node, etcd, plan, name, urls, others)]
    up: tuple[NodeStep, ...] = (PromoteMember(there, name, urls), WaitForEtcd(here))
    title = f"{name} joins the etcd at {url} with an empty data directory"
    return Draft("join", title, tuple(around(node, plan, tuple(down), up)))


def _initial_cluster(
    node: Node, etcd: Component, plan: str, name: str, urls: tuple[str, ...], others: list[Standing]
) -> tuple[NodeStep, ...]:
    """The flags that a first start reads, in the manifest where it is parked."""
    cluster = [(one.name, url) for one in others for url in one.peer_urls] + [(name, url) for url in urls]
    wanted = {
        "initial-cluster": ",".join(f"{member}={url}" for member, url in cluster),
        "initial-cluster-state": "existing",
    }
    data = site.file_data(node, etcd.path)
    edits = tuple(edit for flag, value in wanted.items() for edit in flag_edits(etcd, flag, value))
    (step,) = edit_yaml(etcd.path, data, edits) or (None,)
    if step is None:
        return ()
    return (type(step)(parking(etcd.path, plan), step.changes, step.before, step.after),)


def flag_edits(component: Component, name: str, value: str) -> Iterator[Edit]:
    """Sets a flag where it is given as --name=value, else adds it after the last argument. Refuses any other form."""
    where = component.container.position
    for key in ("command", "args"):
        arguments = component.container.document.get(*where, key, default=[])
        found = [i for i, one in enumerate(arguments) if str(one).lstrip("-").partition("=")[0] == name]
        if any("=" not in str(arguments[i]) for i in found):
            raise Refused(f"{component.path}: --{name} has its value in an argument of its own", "edit it by hand")
        for i in found:
            yield Set((*where, key, i), f"--{name}={value}")
        if found:
            return
    key = "command" if component.container.document.get(*where, "command") else "args"
    last = len(component.container.document.get(*where, key, default=[])) - 1
    yield Insert((*where, key, last), f"--{name}={value}")
