"""A Pod's bandwidth limits need the plugin bandwidth.

The annotations kubernetes.io/ingress-bandwidth and egress-bandwidth are handed to plugins with the capability
bandwidth; without one they are ignored and nothing says so. Cilium's bandwidth manager reads them by itself.

Fix: add {"type": "bandwidth", "capabilities": {"bandwidth": true}} to the chain; Pods made from then on have it.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.network.cni import used
from snapshots.registry.cluster import evidence

SEVERITY = Severity.WARNING
CAPABILITY = "bandwidth"
ANNOTATIONS = ("kubernetes.io/ingress-bandwidth", "kubernetes.io/egress-bandwidth")
BY_THEMSELVES = ("cilium-cni",)


def find(case: Case) -> Iterator[Finding]:
    network = used(case.node)
    if network.main in BY_THEMSELVES:
        raise NotApplicable(f"{network.main} has a bandwidth manager of its own")
    capabilities = [plugin.get("capabilities") for plugin in network.plugins]
    if any(isinstance(each, dict) and each.get(CAPABILITY) is True for each in capabilities):
        return
    chain = Evidence(network.path, text=f"plugins: {', '.join(str(each.get('type')) for each in network.plugins)}")
    for pod in case.cluster.all("Pod"):
        given = pod.metadata.get("annotations") or {}
        named = next((name for name in ANNOTATIONS if name in given), None)
        if named and pod.at("spec", "nodeName") == case.node.name and not pod.at("spec", "hostNetwork"):
            shown = Evidence(evidence(pod).path, text=f"{named}: {given[named]}")
            yield Finding(
                f"Pod {pod.namespace}/{pod.name} has {named}, and no plugin of the chain limits bandwidth",
                (shown, chain),
            )
