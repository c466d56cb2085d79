"""A Pod that asks for a hostPort needs a plugin that maps ports.

The runtime hands hostPorts to the plugins of the chain that have the capability portMappings, usually portmap. Without
one the Pod runs and the port never opens, and nothing says why. Pods in the host's network need no mapping, and
Cilium maps ports by itself when it replaces kube-proxy.

Fix: add {"type": "portmap", "capabilities": {"portMappings": true}} to the chain; Pods made from then on have it.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.cni import Network, used
from snapshots.registry.cluster import evidence
from snapshots.registry.tables.cells import dicts

SEVERITY = Severity.ERROR
CAPABILITY = "portMappings"
BY_THEMSELVES = ("cilium-cni",)


def find(case: Case) -> Iterator[Finding]:
    network = used(case.node)
    if network.main in BY_THEMSELVES:
        raise NotApplicable(f"{network.main} can map ports by itself")
    if maps_ports(network):
        return
    chain = Evidence(network.path, text=f"plugins: {', '.join(str(each.get('type')) for each in network.plugins)}")
    for static in case.node.pods:
        spec = static.document.get("spec")
        if isinstance(spec, dict) and not spec.get("hostNetwork"):
            for port in _host_ports(spec):
                title = f"Static Pod {static.name} asks for hostPort {port}, which nothing maps"
                yield Finding(title, (static.evidence("spec", "containers"), chain))
    try:
        pods = case.cluster.all("Pod")
    except EvidenceMissing:
        return
    for pod in pods:
        here = pod.at("spec", "nodeName") == case.node.name and not pod.at("spec", "hostNetwork")
        for port in _host_ports(pod.at("spec")) if here else ():
            shown = Evidence(evidence(pod).path, text=f"hostPort: {port}")
            yield Finding(
                f"Pod {pod.namespace}/{pod.name} asks for hostPort {port}, which nothing maps", (shown, chain)
            )


def maps_ports(network: Network) -> bool:
    capabilities = (plugin.get("capabilities") for plugin in network.plugins)
    return any(isinstance(each, dict) and each.get(CAPABILITY) is True for each in capabilities)


def _host_ports(spec: object) -> Iterator[int]:
    for container in dicts(spec.get("containers")) if isinstance(spec, dict) else ():
        for port in dicts(container.get("ports")):
            if isinstance(port.get("hostPort"), int) and port["hostPort"] > 0:
                yield port["hostPort"]
