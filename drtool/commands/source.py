"""What a backup is taken from: etcd's address and certificates, and the node's own files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from drtool.config import Config
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.errors import CannotTell
from drtool.host.root import Root
from manifests.layout import Layout
from manifests.node import Node
from manifests.pod import Component
from snapshots.bundle import Bundle, collect
from snapshots.etcd import EtcdAccess

LOCAL = ("127.0.0.1", "::1", "localhost")
LARGE = ("/var/lib/etcd", "/var/log", "/usr/share", "/etc/ssl", "/proc", "/sys", "/dev")


def etcd_access(config: Config, node: Node, root: Root) -> EtcdAccess:
    """From the configuration (flags are in it), and for what it leaves out from the manifests under `root`.

    Raises CannotTell where neither names an endpoint.
    """
    given = config.etcd
    found = _from_etcd(node, root) or _from_apiserver(node, root) or EtcdAccess(())
    endpoints = given.endpoints or found.endpoints
    if not endpoints:
        raise CannotTell(
            f"no etcd endpoint: {root.directory} holds no etcd manifest",
            "run this on a control-plane node, or give --endpoint with --cacert, --cert and --key",
        )
    return EtcdAccess(
        endpoints,
        Path(given.ca) if given.ca else found.ca,
        Path(given.cert) if given.cert else found.cert,
        Path(given.key) if given.key else found.key,
    )


def _from_etcd(node: Node, root: Root) -> EtcdAccess | None:
    """The etcd manifest: its client URLs, loopback first, and the certificate that it serves with (clientAuth too)."""
    etcd = _component(node, "etcd")
    if etcd is None:
        return None
    urls = [*etcd.names("listen-client-urls"), *etcd.names("advertise-client-urls")]
    usable = [url for url in dict.fromkeys(urls) if urlsplit(url).hostname not in ("0.0.0.0", "::", None)]  # noqa: S104
    urls_by_nearness = sorted(usable, key=lambda url: urlsplit(url).hostname not in LOCAL)
    flags = ("trusted-ca-file", "cert-file", "key-file")
    return EtcdAccess(tuple(urls_by_nearness), *(_file(etcd, flag, root) for flag in flags))


def _from_apiserver(node: Node, root: Root) -> EtcdAccess | None:
    apiserver = _component(node, "kube-apiserver")
    if apiserver is None:
        return None
    flags = ("etcd-cafile", "etcd-certfile", "etcd-keyfile")
    return EtcdAccess(apiserver.names("etcd-servers"), *(_file(apiserver, flag, root) for flag in flags))


def node_bundle(config: Config, node: Node, root: Root) -> Bundle | None:
    """The node's files; None where this is no node of a control plane."""
    if node.layout in (Layout.EMPTY, Layout.WORKER, Layout.NOT_KUBEADM) and not node.components:
        return None
    apiserver = _component(node, "kube-apiserver")
    encryption = apiserver.value("encryption-provider-config") if apiserver else ""
    needed = [_host_path(apiserver, encryption)] if apiserver and encryption else []
    return collect(
        root,
        node.name,
        control_plane=node.layout is not Layout.ETCD_ONLY,
        stacked="etcd" in node.components or node.layout in (Layout.STACKED, Layout.ETCD_ONLY),
        named=[*_named(node, root), *config.bundle.extra],
        needed=needed,
        accept_missing=config.bundle.accept_missing,
    )


def _named(node: Node, root: Root) -> Iterator[str]:
    """Every file that a flag of a control-plane program names, as it lies on the host."""
    for component in node.components.values():
        for flag in component.container.flags:
            if flag.value.startswith("/"):
                path = _host_path(component, flag.value)
                if not path.startswith(LARGE) and root.read(path, 0).kind in ("file", "link"):
                    yield path


def version(node: Node) -> str:
    return "v" + ".".join(map(str, node.kubernetes)) if node.kubernetes else ""


def _component(node: Node, program: str) -> Component | None:
    try:
        return node.component(program)
    except (EvidenceMissing, NotApplicable):
        return None


def _file(component: Component, flag: str, root: Root) -> Path | None:
    value = component.value(flag)
    if not value:
        return None
    path = _host_path(component, value)
    try:
        return root.locate(path)
    except OSError:
        return root.directory / path.lstrip("/")


def _host_path(component: Component, path: str) -> str:
    return component.container.host_path(path) or path
