"""From one node's address to a virtual address or a DNS name, without an interruption.

Every API server's certificate first: a client that follows the new name must not meet one that does not know it. So the
plan for a node has two halves, and the second begins once all API servers are through the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.errors import UsageError
from drtool.plans import site
from drtool.plans.readdress import CONFIG_MAPS, KUBEADM, text_changes
from drtool.plans.site import Draft, NodeStep
from manifests.document import Path
from manifests.editing import rewritten
from manifests.kubeconfig import split_url
from manifests.network.addresses import address_of
from manifests.node import Node
from manifests.steps.cluster import ProveNames, RestartDaemonSet, RewriteConfigMap, WaitForName, replaced
from manifests.steps.files import edit_file, edit_yaml
from manifests.steps.running import RestartContainers, RestartKubelet

LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
DNS_NAME = re.compile(rf"({LABEL}\.)*(?!\d+\Z){LABEL}")  # as kubeadm takes it; 192.0.2.300 is none
LOCAL = ("controller-manager.conf", "scheduler.conf", "kubelet.conf")
READERS = {"controller-manager.conf": "kube-controller-manager", "scheduler.conf": "kube-scheduler"}


@dataclass(frozen=True, slots=True)
class Apiserver:
    """One API server of the cluster: HOST:PORT, and whether its certificate is valid for the new name already."""

    server: str
    knows: bool


def move_endpoint(node: Node, to: str, apiservers: tuple[Apiserver, ...]) -> Draft:
    """`apiservers` are all of the cluster's, this node's own among them."""
    site.need_control_plane(node)
    new, old, own = checked(to), site.endpoint(node), site.own_server(node)
    name = split_url(f"//{new}")[0]
    steps: list[NodeStep] = []
    if not node.certificate(site.leaf_files(node, site.leaf("apiserver"))[0]).covers(name):
        steps.append(site.reissue(node, site.leaf("apiserver"), site.advertised(node), more=(name,)))
    steps += [WaitForName(own, name)]
    late = [one.server for one in apiservers if not one.knows and one.server != own]
    if late:
        again = (
            f"the same command on the nodes of {', '.join(late)}; then once more on every one: the rest of the plan "
            "needs all API servers to know the new name"
        )
        return Draft("move-endpoint", f"first half: this API server's certificate for {name}", tuple(steps), (again,))
    if old == new:
        return Draft("move-endpoint", f"the endpoint is {new} already", (), ())
    steps += [WaitForName(one.server, name) for one in apiservers if one.server != own]
    steps += _moves(node, old, new)
    return Draft("move-endpoint", f"endpoint {old} -> {new}", tuple(steps), tuple(_by_hand(old, new)))


def checked(to: str) -> str:
    host, port = split_url(f"//{to}")
    if not port or not (address_of(host) or DNS_NAME.fullmatch(host)):
        raise UsageError(f"--to {to} is no HOST:PORT", "as in --to k8s.example.org:6443")
    return to


def _moves(node: Node, old: str, new: str) -> Iterator[NodeStep]:
    own = site.own_server(node)
    prove = ProveNames((old, new))
    yield prove
    for namespace, name in CONFIG_MAPS:
        yield RewriteConfigMap(own, namespace, name, old, new)
    yield RestartDaemonSet(own, "kube-system", "kube-proxy", "its kubeconfig names the new endpoint")
    yield prove
    changed: list[str] = []
    for path in node.kubeconfigs:
        made = _kubeconfig(node, path, old, new)
        yield from made
        changed += [path.rpartition("/")[2]] if made else []
    for path in KUBEADM:
        data = site.file_data(node, path)
        yield from edit_file(path, data, text_changes(data, old, new))
    readers = tuple(READERS[name] for name in changed if name in READERS)
    if readers:
        yield RestartContainers(readers, "their kubeconfig names the new endpoint")
    if "kubelet.conf" in changed:
        yield RestartKubelet("kubelet.conf names the new endpoint")
    yield prove


def _kubeconfig(node: Node, path: str, old: str, new: str) -> tuple[NodeStep, ...]:
    """What points to this node's own API server stays so (kubeadm's own way since 1.19 and 1.31); the others move."""
    own = address_of(split_url(f"//{old}")[0]) == address_of(site.advertised(node))
    if own and path.rpartition("/")[2] in LOCAL:
        return ()
    data = site.file_data(node, path)

    def rewrite(place: Path, value: str) -> str:
        return replaced(value, old, new) if place[-1] == "server" else value

    return edit_yaml(path, data, rewritten(path, data, rewrite))


def _by_hand(old: str, new: str) -> Iterator[str]:
    yield "the same command on every other control-plane node, for its own kubeconfigs"
    yield (
        f"on every worker: sed -i 's#https://{old}#https://{new}#' /etc/kubernetes/kubelet.conf "
        "&& systemctl restart kubelet"
    )
    yield f"keep {old} answering until no kubelet and no copy of admin.conf names it any more"
