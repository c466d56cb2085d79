"""Where a node's components answer, from its own files: what to probe, and with which certificate."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from drtool.core.check import EvidenceMissing
from drtool.host.probes import Target
from drtool.host.root import Root
from manifests.node import Node
from manifests.pod import Component

Client = tuple[Path, Path] | None
RUNTIMES = ("/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock")
HEALTH = {"kube-apiserver": ("/livez", "/readyz"), "etcd": ("/health",)}
TO_APISERVER = ("/etc/kubernetes/pki/apiserver-kubelet-client",)
TO_ETCD = tuple(
    f"/etc/kubernetes/pki/{name}" for name in ("apiserver-etcd-client", "etcd/healthcheck-client", "etcd/server")
)


def targets(node: Node, root: Root) -> tuple[Target, ...]:
    """Every endpoint that this node should have: each program's own health paths, etcd's listeners, the kubelet."""
    found = [target for component in node.components.values() for target in _probes(component, root)]
    if "etcd" in node.components:
        found += _etcd(node.components["etcd"], root)
    found += _kubelet(node)
    return tuple(dict.fromkeys(found))


def _probes(component: Component, root: Root) -> Iterator[Target]:
    """As the kubelet is told to ask, and with every part named."""
    client = _client(root, TO_APISERVER) if component.program == "kube-apiserver" else None
    for probe in component.container.probes:
        if probe.action != "httpGet" or not probe.port or not 0 < probe.port < 65536:
            continue
        paths = {probe.path.partition("?")[0], *HEALTH.get(component.program, ())}
        if component.program == "etcd":
            paths = {probe.path}  # its health path carries arguments of its own
        for path in sorted(paths):
            asked = path if "?" in path or path == "/health" else f"{path}?verbose"
            if _askable(asked):
                host = probe.host or "127.0.0.1"
                yield Target(component.program, host, probe.port, probe.scheme == "HTTPS", asked, client, guest=True)


def etcd_clients(component: Component, root: Root) -> tuple[Target, ...]:
    """etcd's client API on each address it listens on, with a certificate that it accepts."""
    client = _client(root, TO_ETCD)
    return tuple(
        Target("etcd", host, port, tls, "/health", client)
        for host, port, tls in _urls(component.names("listen-client-urls"))
    )


def _etcd(component: Component, root: Root) -> Iterator[Target]:
    yield from etcd_clients(component, root)
    for host, port, tls in _urls(component.names("listen-peer-urls")):
        yield Target("etcd", host, port, tls)


def _kubelet(node: Node) -> Iterator[Target]:
    if not node.kubelet.config_entry.data and not node.kubelet.flags:
        return
    port, _ = node.kubelet.setting("healthz-port", "healthzPort", default=10248)
    host, _ = node.kubelet.setting("healthz-bind-address", "healthzBindAddress", default="127.0.0.1")
    if str(port).isdecimal() and 0 < int(port) < 65536:
        yield Target("kubelet", _reachable(str(host)), int(port), False, "/healthz?verbose")
    port, _ = node.kubelet.setting("port", "port", default=10250)
    if str(port).isdecimal() and 0 < int(port) < 65536:
        yield Target("kubelet", "127.0.0.1", int(port))


def _urls(urls: tuple[str, ...]) -> Iterator[tuple[str, int, bool]]:
    for url in urls:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            continue
        if host and port and parts.scheme in {"http", "https"}:
            yield _reachable(host), port, parts.scheme == "https"


def _reachable(host: str) -> str:
    """What to dial for an address that a program listens on: the unspecified one is reached over loopback."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


def _askable(path: str) -> bool:
    return path.startswith("/") and path.isascii() and path.isprintable() and " " not in path


def _client(root: Root, bases: tuple[str, ...]) -> Client:
    for base in bases:
        try:
            pair = root.locate(f"{base}.crt"), root.locate(f"{base}.key")
        except (OSError, ValueError):
            continue
        if all(path.is_file() for path in pair):
            return pair
    return None


def runtime_socket(node: Node) -> str:
    """The socket that the kubelet is told to use, else the one that exists; "" where there is none."""
    try:
        named, _ = node.kubelet.setting("container-runtime-endpoint", "containerRuntimeEndpoint", default="")
    except EvidenceMissing:
        named = ""
    path = str(named).removeprefix("unix://")
    if path.startswith("/"):
        return path
    return next((socket for socket in RUNTIMES if node.entry(socket).kind == "socket"), "")
