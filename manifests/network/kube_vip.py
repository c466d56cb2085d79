"""kube-vip as its static Pod sets it up: by environment variables, or by flags of the same meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence
from manifests.network.addresses import Address, address_of
from manifests.network.vip import kube_vip
from manifests.node import Node
from manifests.pod import Container, StaticPod

KUBECONFIG = "/etc/kubernetes/admin.conf"
FLAGS = {
    "address": ("address", "vip_address"),
    "vip": ("address", "vip_address"),
    "interface": ("vip_interface",),
    "cidr": ("vip_cidr",),
    "controlplane": ("cp_enable",),
    "k8sConfigPath": ("k8s_config_file",),
}


@dataclass(frozen=True)
class KubeVip:
    """`settings` by the name of the environment variable, each with its line."""

    pod: StaticPod
    container: Container
    settings: dict[str, tuple[str, Evidence]]

    def value(self, *names: str) -> str:
        return next((self.settings[name][0] for name in names if name in self.settings), "")

    def evidence(self, *names: str) -> Evidence:
        found = (self.settings[name][1] for name in names if name in self.settings)
        return next(found, self.pod.evidence("metadata", "name"))

    @property
    def address(self) -> Address | None:
        return address_of(self.value("address", "vip_address").partition("/")[0])

    @property
    def control_plane(self) -> bool:
        return self.value("cp_enable").lower() == "true"

    @property
    def kubeconfig(self) -> tuple[str, Evidence] | None:
        """The file on the host that it reaches the API server with; None where none is mounted."""
        inside = self.value("k8s_config_file") or KUBECONFIG
        for mount in self.container.mounts:
            if mount.path.rstrip("/") == inside and mount.host_path:
                return mount.host_path, mount.evidence
        host = self.container.host_path(inside)
        return (host, self.pod.evidence("spec", "volumes")) if host else None

    @property
    def local_override(self) -> bool:
        """The name `kubernetes`, which kube-vip dials, made to mean this host; or an address given outright."""
        if self.value("kubernetes_addr") or self.value("cp_detect").lower() == "true":
            return True
        aliases = self.pod.document.get("spec", "hostAliases", default=[])
        for alias in aliases if isinstance(aliases, list) else []:
            names = alias.get("hostnames") if isinstance(alias, dict) else None
            if isinstance(names, list) and "kubernetes" in names:
                return True
        return False


def the_kube_vip(node: Node) -> KubeVip:
    """NotApplicable where none runs as a static Pod here."""
    pod = kube_vip(node)
    containers = [c for c in pod.containers if "kube-vip" in c.image or c.name == "kube-vip"] if pod else []
    if pod is None or not containers:
        raise NotApplicable("no kube-vip among this node's static Pods")
    settings = {name.lower(): (value, evidence) for name, value, evidence in containers[0].environment()}
    for flag in containers[0].flags:
        for name in FLAGS.get(flag.name, ()):
            settings.setdefault(name, (flag.value, flag.evidence))
    return KubeVip(pod, containers[0], settings)


def lock_errors(node: Node, pattern: str) -> tuple[Evidence, ...]:
    """Lines in which kube-vip could not get its lease."""
    lines = node.container_logs.get("kube-vip", ())
    return tuple(line.evidence for line in lines if "plndr" in line.text and re.search(pattern, line.text))
