"""With several control planes, the cluster's endpoint must not be one member's own address.

etcd keeps its quorum when a member dies, and the other API servers stay healthy; yet if controlPlaneEndpoint is cp-1's
own address (or a name that leads to it), kubectl, every worker and every join dial cp-1 alone: the data survives its
loss, access does not. An error before any outage, and the cause during one. With one member it is normal. That the
kubelet, the controller-manager and the scheduler of a control plane dial their own API server is by design.

Fix: move the endpoint to a virtual address or a DNS name of a load balancer.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.identity import members, own_places, url_addresses
from manifests.kubeconfig import split_url
from manifests.layout import Layout
from manifests.network.addresses import Address, address_of
from manifests.node import Node

SEVERITY = Severity.ERROR
EXPLAINS = ("kubeconfig-server-unknown-address", "san-missing-endpoint", "component-not-ready")
FIX = Fix("drtool move-endpoint --to HOST:6443", "moves the cluster's endpoint to a virtual address or a DNS name")
ENDPOINT = re.compile(rb"controlPlaneEndpoint: *[\"']?([^\s\"']+)")
ADMIN = ("admin.conf", "super-admin.conf")


@dataclass(frozen=True, slots=True)
class Door:
    """Where the endpoint is named: `host` as written."""

    host: str
    evidence: Evidence
    node: Node


def find(case: Case) -> Iterator[Finding]:
    if not case.node.layout.control_plane and not case.others:
        raise NotApplicable(f"a {case.node.layout} node alone does not tell how many control planes there are")
    known = _members(case)
    if len(known) < 2:
        return
    for door in _doors(case):
        member = _behind(door, known)
        if member:
            name, address = member
            yield Finding(
                f"The endpoint {door.host} is {name}'s own address, and the cluster has {len(known)} control planes",
                (door.evidence, *_said(case, known), *_pinned(door, address)),
                fix=FIX,
            )
            return


def _members(case: Case) -> dict[str, frozenset[Address]]:
    """Control planes by name with their own addresses: etcd's members, by the db where there is one, else by flags.

    Of the other nodes those are added that are no member by name or address. This node is one of the members: that its
    files and etcd's record differ (it was renamed, its address moved) must not make two of it.
    """
    found: dict[str, frozenset[Address]] = {}
    if case.node.layout is Layout.STACKED:
        found = _etcd_members(case)
    elif case.node.layout.control_plane:
        found = {case.node.name: _own(case.node)}
    for node in case.others:
        known = frozenset(address for addresses in found.values() for address in addresses)
        if node.layout.control_plane and node.name not in found and not known & _own(node):
            found[node.name] = _own(node)
    return found


def _etcd_members(case: Case) -> dict[str, frozenset[Address]]:
    """Those that serve: a learner, one that never started, and one whose Node is gone are no control planes."""
    try:
        database = case.database
        nodes = database.contents.nodes
        own = case.node.etcd.value("name")
        told = database.contents.whole and own in nodes
        return {
            member.name: frozenset(url_addresses(",".join((*member.peer_urls, *member.client_urls))))
            for member in database.cluster.members
            if member.name and not member.learner and (member.name in nodes or not told)
        }
    except (EvidenceMissing, NotApplicable):
        return {name: frozenset(addresses) for name, addresses in members(case.node).items()}


def _own(node: Node) -> frozenset[Address]:
    return frozenset(place.address for place in own_places(node))


def _doors(case: Case) -> Iterator[Door]:
    """kubeadm's own record decides where it can be had; else what admin.conf dials. Then what workers dial."""
    recorded = tuple(_recorded(case))
    yield from recorded
    for node in (case.node, *case.others):
        if node.layout is Layout.WORKER:
            yield from _dialled(node, ("kubelet.conf",))
        elif not recorded and node.layout.control_plane:
            yield from _dialled(node, ADMIN)


def _recorded(case: Case) -> Iterator[Door]:
    for node in (case.node, *case.others):
        try:
            configuration = node.cluster_configuration
        except EvidenceMissing:
            continue
        endpoint = configuration.get("controlPlaneEndpoint")
        if endpoint:
            yield Door(split_url(str(endpoint))[0], configuration.evidence("controlPlaneEndpoint"), node)
    try:
        match = ENDPOINT.search(case.database.contents.kubeadm)
    except (EvidenceMissing, NotApplicable):
        return
    if match:
        text = match[1].decode("utf-8", "replace")
        told = case.database.evidence(f"kubeadm-config: controlPlaneEndpoint: {text}")
        yield Door(split_url(text)[0], told, case.node)


def _dialled(node: Node, names: tuple[str, ...]) -> Iterator[Door]:
    for name in names:
        config = node.kubeconfigs.get(f"/etc/kubernetes/{name}")
        if config is not None and config.host:
            yield Door(config.host, config.server_evidence, node)


def _behind(door: Door, known: dict[str, frozenset[Address]]) -> tuple[str, Address] | None:
    """The member whose own address the endpoint is.

    A name that /etc/hosts of a control plane sends to itself is the known way around a balancer that cannot send a flow
    back, and says nothing about the others.
    """
    own = _own(door.node)
    for address in door.node.resolve(door.host):
        if address_of(door.host) is None and (address.is_loopback or address in own):
            continue
        for name, addresses in known.items():
            if address in addresses:
                return name, address
    return None


def _said(case: Case, known: dict[str, frozenset[Address]]) -> tuple[Evidence, ...]:
    """Who the members are."""
    try:
        text = ", ".join(f"{name} {' '.join(sorted(map(str, addresses)))}" for name, addresses in known.items())
        return (case.database.evidence(f"members: {text}"),)
    except (EvidenceMissing, NotApplicable):
        etcd = case.node.components.get("etcd")
        return (etcd.flag("initial-cluster").evidence,) if etcd and etcd.has("initial-cluster") else ()


def _pinned(door: Door, address: Address) -> tuple[Evidence, ...]:
    """The line of /etc/hosts that leads a name there."""
    places = door.node.hosts.get(door.host.lower(), ())
    return tuple(evidence for found, evidence in places if found == address)[:1]
