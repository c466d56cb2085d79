"""After this node's address changed: every place that names it, from the manifests to the cluster's own ConfigMaps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_network

from drtool.core.check import EvidenceMissing
from drtool.core.errors import Refused, UsageError
from drtool.plans import site
from drtool.plans.site import Draft, NodeStep
from manifests.document import Path
from manifests.editing import Change, rewritten
from manifests.kubeconfig import split_url
from manifests.network.addresses import Address, address_of
from manifests.network.vip import virtual_addresses
from manifests.node import Node
from manifests.steps.cluster import (
    RestartDaemonSet,
    RewriteConfigMap,
    WaitForApiserver,
    replaced,
    whole,
)
from manifests.steps.files import edit_file, edit_yaml
from manifests.steps.running import StartControlPlane, StopControlPlane
from snapshots.steps.data import WaitForEtcd
from snapshots.steps.members import UpdateMember

CONFIG_MAPS = (("kube-system", "kubeadm-config"), ("kube-system", "kube-proxy"), ("kube-public", "cluster-info"))
PLAIN = ("/etc/hosts", "/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet")
UNITS = re.compile(r"/etc/systemd/system/kubelet\.service(\.d/[^/]+)?")
KUBEADM = ("/root/kubeadm-config.yaml", "/etc/kubernetes/kubeadm-config.yaml", "/kubeadm-config.yaml")
NOT_SETTINGS = re.compile(r"/(proc|sys|run|var/log|drtool|var/lib/etcd|usr)/|/etc/kubernetes/(tmp|pki)/")


@dataclass(frozen=True, slots=True)
class Peer:
    """A member of etcd: its name, and where it is."""

    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]


def candidates(node: Node) -> tuple[Address, ...]:
    """Addresses of this host that could be the new one: of the old one's family, and no Pod's or Service's network."""
    old = address_of(site.advertised(node))
    ranges = [
        text
        for component, flag in (
            ("kube-controller-manager", "cluster-cidr"),
            ("kube-apiserver", "service-cluster-ip-range"),
        )
        if (found := site.present(node, component)) is not None
        for text in found.names(flag)
    ]
    networks = [ip_network(text, strict=False) for text in (*ranges, "172.17.0.0/16")]
    virtual = set(virtual_addresses(node))
    own = [a for a in node.addresses.own if (old is None or a.version == old.version) and a not in virtual]
    return tuple(a for a in own if not any(a in network for network in networks))


def target(node: Node, to: str) -> str:
    """The new address: the one given, else the only one that it can be."""
    old = site.advertised(node)
    if to:
        address = address_of(to)
        if address is None:
            raise UsageError(f"--to {to} is no IP address", "give the address that this node has now")
        if address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local:
            raise UsageError(f"no other node reaches this one at {to}", "give the address that this node has now")
        if str(address) == old:
            raise UsageError(f"this node is already configured for {old}")
        if not node.addresses.has(address):
            raise Refused(f"{to} is on no interface of this node", "give the node that address first")
        return str(address)
    found = candidates(node)
    if address_of(old) in found:
        raise UsageError(f"the configured address {old} is still on this node", "name the new one with --to")
    if len(found) != 1:
        shown = ", ".join(map(str, found)) or "none"
        raise UsageError(f"which address is the new one? This node has: {shown}", "name it with --to")
    return str(found[0])


def readdress(node: Node, to: str, peers: tuple[Peer, ...] = ()) -> Draft:
    """`peers` are all members of etcd as its own data tells them; one or none means a single member."""
    site.need_control_plane(node)
    new, old = target(node, to), site.advertised(node)
    files, edited = _file_steps(node, old, new)
    others = tuple(peer for peer in peers if not _mine(peer, old))
    programs = site.programs(node)
    server = site.own_server(node, new)
    update = _member_step(node, old, new, peers, others)
    steps: list[NodeStep] = [StopControlPlane(programs), *files, *_certificates(node, old, new)]
    if others:
        steps += update
    steps += [StartControlPlane(programs)]
    if site.present(node, "etcd"):
        steps += [WaitForEtcd(site.etcd_access(node))]
    if not others:
        steps += update
    steps += [WaitForApiserver(server)]
    steps += [RewriteConfigMap(server, namespace, name, old, new) for namespace, name in CONFIG_MAPS]
    moved = split_url(f"//{site.endpoint(node)}")[0] == old
    if moved:
        steps += [RestartDaemonSet(server, "kube-system", "kube-proxy", "its kubeconfig names the new address")]
    by_hand = (*_other_nodes(node, old, new, moved), *_leftovers(node, old, edited))
    return Draft("readdress", f"this node's address: {old} -> {new}", tuple(steps), by_hand)


def _file_steps(node: Node, old: str, new: str) -> tuple[tuple[NodeStep, ...], frozenset[str]]:
    """Edits of every file that names the old address, and the paths of those files."""
    steps: list[NodeStep] = []
    for pod in node.pods:
        data = site.file_data(node, pod.path)
        steps += edit_yaml(pod.path, data, rewritten(pod.path, data, lambda _, value: replaced(value, old, new)))
    for path in node.kubeconfigs:
        data = site.file_data(node, path)
        steps += edit_yaml(path, data, rewritten(path, data, lambda place, value: _server(place, value, old, new)))
    for path in _plain_files(node):
        data = site.file_data(node, path)
        steps += edit_file(path, data, text_changes(data, old, new))
    return tuple(steps), frozenset(str(getattr(step, "path", "")) for step in steps)


def _server(place: Path, value: str, old: str, new: str) -> str:
    return replaced(value, old, new) if place[-1] == "server" else value


def _plain_files(node: Node) -> Iterator[str]:
    yield from (*PLAIN, *KUBEADM, "/var/lib/kubelet/config.yaml")
    yield from (entry.path for entry in node.capture.matching(UNITS.pattern))


def text_changes(data: bytes, old: str, new: str) -> tuple[Change, ...]:
    """Every place where a text names the old host, comments too."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ()
    changes: list[Change] = []
    position = 0
    for line in text.splitlines(keepends=True):
        rewritten_line = replaced(line, old, new)
        if rewritten_line != line:
            changes.append(Change(position, line, rewritten_line))
        position += len(line.encode())
    return tuple(changes)


def _certificates(node: Node, old: str, new: str) -> Iterator[NodeStep]:
    yield site.reissue(node, site.leaf("apiserver"), new, drop=old)
    if site.present(node, "etcd"):
        for path in ("etcd/server", "etcd/peer"):
            yield site.reissue(node, site.leaf(path), new, drop=old)


def _mine(peer: Peer, old: str) -> bool:
    return any(split_url(url)[0] == old for url in peer.peer_urls)


def _member_step(
    node: Node, old: str, new: str, peers: tuple[Peer, ...], others: tuple[Peer, ...]
) -> tuple[NodeStep, ...]:
    """Asked of another member where there is one: a quorum of theirs knows the new URL before this one starts."""
    etcd = site.present(node, "etcd")
    if etcd is None:
        return ()
    mine = next((peer for peer in peers if _mine(peer, old)), None)
    urls = mine.peer_urls if mine else etcd.names("initial-advertise-peer-urls")
    if not any(split_url(url)[0] == old for url in urls):
        return ()
    elsewhere = tuple(url for peer in others for url in _client_urls(peer))
    access = site.etcd_access(node, *elsewhere) if others else site.etcd_access(node)
    return (UpdateMember(access, etcd.value("name"), urls, tuple(replaced(url, old, new) for url in urls)),)


def _client_urls(peer: Peer) -> tuple[str, ...]:
    """etcd 3.5.1 and older lines lose the client URLs of members in the db; kubeadm's are the peer's on 2379."""
    return peer.client_urls or tuple(re.sub(r":\d+$", ":2379", url) for url in peer.peer_urls)


def _other_nodes(node: Node, old: str, new: str, moved: bool) -> Iterator[str]:
    if moved:
        port = split_url(f"//{site.endpoint(node)}")[1]
        yield (
            f"on every other node: sed -i 's#https://{old}:{port}#https://{new}:{port}#' /etc/kubernetes/*.conf "
            "&& systemctl restart kubelet"
        )
        yield f"wherever a copy of admin.conf is used (~/.kube/config): its server is https://{new}:{port} now"


def _leftovers(node: Node, old: str, edited: frozenset[str]) -> Iterator[str]:
    """Files that still name the old address, for a person to judge."""
    pattern = whole(old)
    for path, entry in sorted(node.capture.entries.items()):
        if path in edited or entry.data is None or NOT_SETTINGS.match(path):
            continue
        try:
            lines = entry.data.decode().splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            if pattern.search(line) and path not in node.kubeconfigs:
                yield f"{path}:{number} also names {old}: {line.strip()[:100]}"
                break


def known_peers(node: Node, members: tuple[Peer, ...]) -> tuple[Peer, ...]:
    """The members that etcd's data tells, else those of --initial-cluster (as it was when this one joined)."""
    if members:
        return members
    etcd = site.present(node, "etcd")
    if etcd is None:
        return ()
    found: dict[str, list[str]] = {}
    for part in etcd.names("initial-cluster"):
        name, _, url = part.partition("=")
        found.setdefault(name, []).append(url)
    return tuple(Peer(name, tuple(urls), ()) for name, urls in found.items())


def unknown_addresses(node: Node) -> bool:
    try:
        return not node.addresses.own
    except EvidenceMissing:
        return True
