"""The API server must dial etcd where etcd listens, with credentials that etcd asks for.

A host, port or scheme that nobody listens on ends in `Unable to create storage backend` or `context deadline exceeded`,
which says nothing about the reason. 127.0.0.1 and the node's own address are both right while etcd listens on them.

Fix: make --etcd-servers, --etcd-cafile, --etcd-certfile and --etcd-keyfile in kube-apiserver.yaml agree with etcd.yaml,
or with etcd.external in kubeadm's configuration.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.identity import of_other_members
from manifests.kubeconfig import split_url
from manifests.layout import Layout
from manifests.network.addresses import address_of
from manifests.node import Node
from manifests.pod import Component, Flag

SEVERITY = Severity.CRITICAL
EXPLAINS = ("issuer-mismatch", "component-not-ready", "container-exited")
FIX = Fix("drtool fix etcd-servers-vs-etcd", "points the API server to where etcd listens")


def find(node: Node) -> Iterator[Finding]:
    apiserver = node.apiserver
    servers = apiserver.flag("etcd-servers")
    if node.layout is Layout.EXTERNAL_ETCD:
        yield from _external(node, apiserver, servers)
        return
    etcd = node.etcd
    for url in apiserver.names("etcd-servers"):
        problem = _unheard(node, etcd, url)
        if problem:
            yield Finding(
                f"The API server dials etcd at {url}, and {problem[0]}", (servers.evidence, problem[1]), fix=FIX
            )
    yield from _credentials(node, apiserver, etcd)


def _unheard(node: Node, etcd: Component, url: str) -> tuple[str, Evidence] | None:
    """None where etcd listens there, or where it is another member's address."""
    host, port = split_url(url)
    address = address_of(host)
    if address is not None and address in of_other_members(node):
        return None
    given = etcd.has("listen-client-urls")
    listening = etcd.value("listen-client-urls", "http://localhost:2379")
    told = etcd.flag("listen-client-urls").evidence if given else etcd.image_evidence
    for candidate in listening.split(","):
        there, its_port = split_url(candidate.strip())
        its_address = address_of(there)
        same_host = there == host or (
            its_address is not None and (its_address == address or its_address.is_unspecified)
        )
        if host == "localhost" or there == "localhost":
            same_host = same_host or {host, there} <= {"localhost", "127.0.0.1", "::1"}
        if address is None and host != "localhost":
            same_host = True  # a name: where it leads only DNS knows, port and scheme still count
        if same_host and its_port == port:
            if _scheme(candidate) == _scheme(url):
                return None
            return f"etcd speaks {_scheme(candidate)} there", told
    return f"etcd listens on {listening}", told


def _scheme(url: str) -> str:
    return url.strip().partition("://")[0].lower()


def _credentials(node: Node, apiserver: Component, etcd: Component) -> Iterator[Finding]:
    needed = ["etcd-cafile"] if apiserver.value("etcd-servers").startswith("https") else []
    if etcd.value("client-cert-auth") == "true" or etcd.has("trusted-ca-file"):
        needed += ["etcd-certfile", "etcd-keyfile"]
    for name in needed:
        if not apiserver.has(name):
            asks = etcd.flag("client-cert-auth") if etcd.has("client-cert-auth") else etcd.flag("listen-client-urls")
            yield Finding(
                f"etcd asks for a client certificate over TLS, and the API server has no --{name}",
                (apiserver.flag("etcd-servers").evidence, asks.evidence),
                fix=FIX,
            )
    yield from _foreign_files(node, apiserver, etcd)


def _foreign_files(node: Node, apiserver: Component, etcd: Component) -> Iterator[Finding]:
    """A flag that names another file than kubeadm's own, which does not fit: the flag is at fault, not the file."""
    if not etcd.has("trusted-ca-file") or not apiserver.has("etcd-cafile"):
        return
    trusted = etcd.flag("trusted-ca-file")
    named = apiserver.flag("etcd-cafile")
    if named.value != trusted.value and not _holds(node, named.value, trusted.value):
        yield Finding(
            f"The API server checks etcd against {named.value}, and etcd's CA is {trusted.value}",
            (named.evidence, trusted.evidence),
            fix=FIX,
        )
    if apiserver.has("etcd-certfile"):
        client = apiserver.flag("etcd-certfile")
        usual = "/etc/kubernetes/pki/apiserver-etcd-client.crt"
        if (
            client.value != usual
            and node.entry(client.value).data is not None
            and not _issued(node, client.value, trusted.value)
            and _issued(node, usual, trusted.value)
        ):
            yield Finding(
                f"The API server shows etcd {client.value}, which etcd's CA {trusted.value} did not issue",
                (client.evidence, trusted.evidence),
                fix=FIX,
            )


def _holds(node: Node, bundle: str, ca: str) -> bool:
    prints = {certificate.fingerprint for certificate in node.pem(bundle).certificates}
    return node.certificate(ca).fingerprint in prints


def _issued(node: Node, path: str, ca: str) -> bool:
    try:
        return any(node.certificate(path).issued_by(authority) for authority in node.pem(ca).certificates)
    except EvidenceMissing:
        return False


def _external(node: Node, apiserver: Component, servers: Flag) -> Iterator[Finding]:
    configuration = node.cluster_configuration
    known = configuration.get("etcd", "external", "endpoints", default=[])
    if not isinstance(known, list) or not known:
        raise EvidenceMissing("kubeadm's configuration names no external endpoints to compare with")
    wanted = {(_scheme(str(url)), *split_url(str(url))) for url in known}
    for url in apiserver.names("etcd-servers"):
        if (_scheme(url), *split_url(url)) not in wanted:
            yield Finding(
                f"The API server dials etcd at {url}, which is none of the cluster's external endpoints",
                (servers.evidence, configuration.evidence("etcd", "external", "endpoints")),
            )
    for name, key in (("etcd-cafile", "caFile"), ("etcd-certfile", "certFile"), ("etcd-keyfile", "keyFile")):
        if configuration.get("etcd", "external", key) and not apiserver.has(name):
            yield Finding(
                f"The external etcd asks for TLS, and the API server has no --{name}",
                (servers.evidence, configuration.evidence("etcd", "external", key)),
            )
