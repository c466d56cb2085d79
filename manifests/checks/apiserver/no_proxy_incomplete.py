"""Where a proxy is set, NO_PROXY must cover the cluster's own addresses.

kubeadm copies *_proxy of the shell that ran it into the static Pods. Controller-manager, scheduler, webhook calls and
the kubelet then talk to the API server through the proxy, unless NO_PROXY names the node's address, the endpoint, the
Service range and the Pod range. Go reads networks in CIDR form there, whatever the shell's tools make of them; a proxy
for the runtime's pulls alone is fine.

Fix: complete NO_PROXY (node addresses, endpoint, Service and Pod ranges, .svc, .cluster.local) in the manifests and the
kubelet's drop-ins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Layer, Severity
from manifests.identity import endpoint, of_other_members
from manifests.installed import layer_of
from manifests.kubeconfig import split_url
from manifests.kubelet import read_environment
from manifests.network.addresses import address_of
from manifests.node import Node

SEVERITY = Severity.ERROR
KUBECONFIGS = {
    "kubelet": "kubelet.conf",
    "kube-controller-manager": "controller-manager.conf",
    "kube-scheduler": "scheduler.conf",
}
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY")
Network = IPv4Network | IPv6Network


def find(node: Node) -> Iterator[Finding]:
    found = False
    for program, component in node.components.items():
        variables = {name.upper(): (value, at) for name, value, at in component.container.environment()}
        if _proxied(variables):
            found = True
            yield from _judge(node, program, variables, layer_of(program))
    variables = _unit_environment(node)
    if _proxied(variables):
        found = True
        yield from _judge(node, "kubelet", variables, Layer.KUBELET)
    if not found:
        raise NotApplicable("no proxy is set")


def _proxied(variables: Mapping[str, tuple[str, Evidence]]) -> bool:
    return any(variables.get(name, ("",))[0] for name in PROXIES)


def _unit_environment(node: Node) -> dict[str, tuple[str, Evidence]]:
    found = {}
    for setting in node.kubelet_unit.all("Environment"):
        for name, value in re.findall(r"(\w+)=([^\s\"']*)", setting.value):
            found[name.upper()] = (value, setting.evidence)
    for named in node.kubelet_unit.all("EnvironmentFile"):
        for setting in read_environment(node.entry(named.value.lstrip("-"))):
            found[setting.key.upper()] = (setting.value, setting.evidence)
    return found


def _judge(node: Node, who: str, variables: Mapping[str, tuple[str, Evidence]], layer: Layer) -> Iterator[Finding]:
    proxy = next(variables[name] for name in PROXIES if variables.get(name, ("",))[0])
    exempt, at = variables.get("NO_PROXY", ("", proxy[1]))
    entries = [entry.strip().lower() for entry in exempt.split(",") if entry.strip()]
    missing = [(what, name) for what, name in _needed(node, who) if not covers(entries, name)]
    if missing:
        listed = ", ".join(f"{what} {name}" for what, name in missing)
        evidence = (proxy[1],) if at == proxy[1] else (proxy[1], at)
        yield Finding(f"{who} uses a proxy, and NO_PROXY does not cover {listed}", evidence, layer=layer)
    elif who == "kube-apiserver" and not covers(entries, "webhook.default.svc"):
        title = "kube-apiserver uses a proxy, and NO_PROXY does not cover .svc: webhooks are called through it"
        yield Finding(title, (proxy[1], at), Severity.WARNING, layer)


def _needed(node: Node, who: str) -> Iterator[tuple[str, str]]:
    if who == "etcd":
        for address in sorted(map(str, of_other_members(node))):  # its peers are dialled as the environment says
            yield "its peer", address
        return
    apiserver, manager = node.components.get("kube-apiserver"), node.components.get("kube-controller-manager")
    if apiserver and apiserver.has("advertise-address"):
        yield "this node's address", apiserver.value("advertise-address")
    config = node.kubeconfigs.get(f"/etc/kubernetes/{KUBECONFIGS.get(who, '')}")
    host = split_url(endpoint(node))[0]
    if config is not None and host and config.host == host:
        yield "the endpoint", host.strip("[]")
    if who == "kubelet":
        return
    for component, flag, what in (
        (apiserver, "service-cluster-ip-range", "the Service range"),
        (manager, "cluster-cidr", "the Pod range"),
    ):
        for network in component.names(flag) if component else ():
            yield what, network


def covers(entries: list[str], name: str) -> bool:
    """As golang.org/x/net/http/httpproxy reads NO_PROXY; a range is covered by a network that contains it."""
    if "*" in entries:
        return True
    wanted = _network(name)
    for entry in entries:
        bare = entry.removeprefix("[").partition("]")[0] if entry.startswith("[") else entry
        if bare.count(":") == 1:
            bare = bare.partition(":")[0]
        known = _network(bare)
        if wanted is not None and known is not None:
            if wanted.version == known.version and wanted.subnet_of(known):  # type: ignore[arg-type]
                return True
        elif wanted is None and known is None and _domain(bare, name.lower()):
            return True
    return False


def _network(text: str) -> Network | None:
    if address_of(text) is None and "/" not in text:
        return None
    try:
        return ip_network(text.strip("[]"), strict=False)
    except ValueError:
        return None


def _domain(entry: str, name: str) -> bool:
    """`example.org` covers the name and what is below it; `.example.org` and `*.example.org` what is below it."""
    below = entry.lstrip("*").lstrip(".")
    return (name == below and not entry.startswith((".", "*"))) or name.endswith("." + below)
