"""A static Pod's probes must dial where its program listens.

The kubelet kills a healthy program whose liveness probe goes to another port, another address or by the wrong scheme:
it restarts every minute or so without an error in its own log.

Fix: make the probe's host, port and scheme agree with the flags (--secure-port and --bind-address; for etcd,
--listen-metrics-urls).
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Fix, Layer, Severity
from manifests.kubeconfig import split_url
from manifests.network.addresses import address_of
from manifests.node import Node
from manifests.pod import Component, Probe

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready")
PORTS = {"kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259}
LAYERS = {"etcd": Layer.ETCD, "kube-apiserver": Layer.APISERVER}
Listener = tuple[str, int | None, str, Evidence]


def find(node: Node) -> Iterator[Finding]:
    for program, component in node.components.items():
        listeners = list(_etcd(component) if program == "etcd" else _secure(component))
        for probe in component.container.probes:
            problem = _problem(node, probe, listeners) if probe.action in {"httpGet", "tcpSocket"} else None
            if problem:
                yield Finding(
                    f"The {probe.kind} of {program} {problem[0]}",
                    (probe.evidence, problem[1]),
                    layer=LAYERS.get(program, Layer.CONTROLLERS),
                    fix=Fix("drtool fix probe-target-mismatch", "points the probe to where the program listens"),
                )


def _secure(component: Component) -> Iterator[Listener]:
    default = PORTS[component.program]
    port = component.value("secure-port", str(default))
    evidence = (
        component.flag("secure-port").evidence if component.has("secure-port") else component.pod.evidence("spec")
    )
    yield component.value("bind-address", "0.0.0.0"), int(port) if port.isdecimal() else None, "HTTPS", evidence  # noqa: S104 - the program's default


def _etcd(component: Component) -> Iterator[Listener]:
    for name in ("listen-metrics-urls", "listen-client-urls"):
        for flag in component.all(name):
            for url in flag.value.split(","):
                host, port = split_url(url.strip())
                yield host, port, "HTTPS" if url.strip().startswith("https") else "HTTP", flag.evidence


def _problem(node: Node, probe: Probe, listeners: list[Listener]) -> tuple[str, Evidence] | None:
    if probe.port is None or not listeners:
        return None
    on_port = [listener for listener in listeners if listener[1] == probe.port]
    if not on_port:
        ports = ", ".join(str(listener[1]) for listener in listeners)
        return f"dials port {probe.port}, and it listens on {ports}", listeners[0][3]
    if probe.action == "httpGet" and all(scheme != probe.scheme.upper() for _, _, scheme, _ in on_port):
        return f"speaks {probe.scheme.upper()}, and port {probe.port} is {on_port[0][2]}", on_port[0][3]
    return _host_problem(node, probe, on_port)


def _host_problem(node: Node, probe: Probe, on_port: list[Listener]) -> tuple[str, Evidence] | None:
    if not probe.host or (address := address_of(probe.host)) is None:
        return None
    bound = [address_of(host) for host, _, _, _ in on_port]
    if any(listener is None or listener.is_unspecified for listener in bound):
        return None if _local(node, probe) else (f"dials {probe.host}, which this host does not have", on_port[0][3])
    if address not in bound:
        return f"dials {probe.host}, and it listens on {', '.join(map(str, bound))} only", on_port[0][3]
    return None


def _local(node: Node, probe: Probe) -> bool:
    address = address_of(probe.host)
    try:
        return address is None or node.addresses.has(address)
    except EvidenceMissing:
        return True
