"""Who proves itself to whom: every certificate that a control-plane program or a kubeconfig presents.

Taken from the flags, not from kubeadm's usual file names, so that a moved or renamed file is judged too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Layer, Severity
from manifests.kubeconfig import Kubeconfig
from manifests.node import HOME_CONFIG, PKI, Node
from manifests.pki.certificates import Certificate, Pem

CLUSTER_CA = f"{PKI}/ca.crt"
ETCD_CLIENT = "API server's etcd client"


@dataclass(frozen=True)
class Credential:
    """`pem` holds the chain that is presented, `key` the private key; either may be missing from the tree.

    `verified_by` are the CA files of those who check it; `loss` is how bad it is when it no longer works; `embedded` is
    true for a certificate inside a kubeconfig, `config` the kubeconfig that presents it.
    """

    role: str
    reader: str
    path: str
    evidence: Evidence
    pem: Pem | None
    key: Pem | None
    key_path: str
    verified_by: tuple[tuple[str, Evidence], ...]
    loss: Severity
    layer: Layer
    serving: bool = False
    embedded: bool = False
    config: Kubeconfig | None = None

    @property
    def certificate(self) -> Certificate | None:
        return self.pem.certificates[0] if self.pem is not None and self.pem.certificates else None


@dataclass(frozen=True, slots=True)
class _Pair:
    program: str
    role: str
    certificate: str
    key: str
    verifiers: tuple[tuple[str, str], ...]  # (program, flag that names its CA)
    loss: Severity
    layer: Layer
    serving: bool


_PAIRS = (
    _Pair(
        "etcd", "etcd server", "cert-file", "key-file", (("kube-apiserver", "etcd-cafile"),),
        Severity.CRITICAL, Layer.ETCD, True,
    ),
    _Pair(
        "etcd", "etcd peer", "peer-cert-file", "peer-key-file", (("etcd", "peer-trusted-ca-file"),),
        Severity.CRITICAL, Layer.ETCD, True,
    ),
    _Pair(
        "kube-apiserver", ETCD_CLIENT, "etcd-certfile", "etcd-keyfile", (("etcd", "trusted-ca-file"),),
        Severity.CRITICAL, Layer.APISERVER, False,
    ),
    _Pair(
        "kube-apiserver", "API server", "tls-cert-file", "tls-private-key-file", (),
        Severity.CRITICAL, Layer.APISERVER, True,
    ),
    _Pair(
        "kube-apiserver", "API server's kubelet client", "kubelet-client-certificate", "kubelet-client-key", (),
        Severity.ERROR, Layer.APISERVER, False,
    ),
    _Pair(
        "kube-apiserver", "front proxy client", "proxy-client-cert-file", "proxy-client-key-file",
        (("kube-apiserver", "requestheader-client-ca-file"),), Severity.ERROR, Layer.OBJECTS, False,
    ),
)  # fmt: skip
_KUBECONFIGS = {
    "kubelet.conf": ("kubelet client", Severity.CRITICAL, Layer.KUBELET),
    "controller-manager.conf": ("controller-manager client", Severity.ERROR, Layer.CONTROLLERS),
    "scheduler.conf": ("scheduler client", Severity.ERROR, Layer.CONTROLLERS),
    "admin.conf": ("admin", Severity.WARNING, Layer.APISERVER),
    "super-admin.conf": ("super-admin", Severity.WARNING, Layer.APISERVER),
}


def credentials(node: Node) -> tuple[Credential, ...]:
    """In the order of the layers; what this node's layout does not have is left out."""
    found = (*_from_flags(node), *_healthcheck(node), *_from_kubeconfigs(node), *_from_home(node))
    return tuple(sorted(found, key=lambda credential: credential.layer))


def _from_flags(node: Node) -> Iterator[Credential]:
    for pair in _PAIRS:
        component = node.components.get(pair.program)
        if component is None or not component.has(pair.certificate):
            continue
        flag = component.flag(pair.certificate)
        path = component.container.host_path(flag.value) or flag.value
        key = component.value(pair.key)
        key_path = component.container.host_path(key) or key
        yield Credential(
            role=pair.role,
            reader=pair.program,
            path=path,
            evidence=flag.evidence,
            pem=_pem(node, path),
            key=private_half(node, key_path),
            key_path=key_path,
            verified_by=tuple(_verifiers(node, pair)),
            loss=pair.loss,
            layer=pair.layer,
            serving=pair.serving,
        )


def _verifiers(node: Node, pair: _Pair) -> Iterator[tuple[str, Evidence]]:
    for program, name in pair.verifiers:
        component = node.components.get(program)
        if component is not None and component.has(name):
            flag = component.flag(name)
            yield component.container.host_path(flag.value) or flag.value, flag.evidence
    if not pair.verifiers:
        yield CLUSTER_CA, Evidence(CLUSTER_CA)
    if pair.role == ETCD_CLIENT and "etcd" not in node.components:
        yield from _of_external_etcd(node)


def _of_external_etcd(node: Node) -> Iterator[tuple[str, Evidence]]:
    """What external members trust is theirs to know, and need not be what signed them.

    --etcd-cafile stands for it where it names the client's issuer, or is the cluster's CA, which signs no etcd client.
    """
    apiserver = node.components["kube-apiserver"]
    path = apiserver.container.host_path(apiserver.value("etcd-cafile")) or apiserver.value("etcd-cafile")
    client = apiserver.container.host_path(apiserver.value("etcd-certfile")) or apiserver.value("etcd-certfile")
    ca, cluster, leaf = (_pem(node, name) for name in (path, CLUSTER_CA, client))
    if ca is None or not ca.certificates or leaf is None or not leaf.certificates:
        return
    named = {certificate.common_name for certificate in ca.certificates}
    keys = {certificate.public_key for certificate in cluster.certificates} if cluster else set()
    shared = any(certificate.public_key in keys for certificate in ca.certificates)
    if shared or leaf.certificates[0].issuer in named:
        yield path, apiserver.flag("etcd-cafile").evidence


def _healthcheck(node: Node) -> Iterator[Credential]:
    path = f"{PKI}/etcd/healthcheck-client.crt"
    if node.entry(path).data is not None:
        key = path.removesuffix(".crt") + ".key"
        ca = f"{PKI}/etcd/ca.crt"
        yield Credential(
            role="etcd health check client",
            reader="etcdctl",
            path=path,
            evidence=Evidence(path),
            pem=_pem(node, path),
            key=private_half(node, key),
            key_path=key,
            verified_by=((ca, Evidence(ca)),),
            loss=Severity.WARNING,
            layer=Layer.ETCD,
        )


def _from_kubeconfigs(node: Node) -> Iterator[Credential]:
    for name, (role, loss, layer) in _KUBECONFIGS.items():
        config = node.kubeconfigs.get(f"/etc/kubernetes/{name}")
        if config is not None and (config.client is not None or config.client_file):
            yield _from_kubeconfig(node, config, role, loss, layer)


def _from_home(node: Node) -> Iterator[Credential]:
    config = node.home_kubeconfig
    if config is not None and config.client is not None:
        yield _from_kubeconfig(node, config, "admin's copy", Severity.WARNING, Layer.APISERVER)


def _from_kubeconfig(node: Node, config: Kubeconfig, role: str, loss: Severity, layer: Layer) -> Credential:
    apiserver = node.components.get("kube-apiserver")
    verifier = (CLUSTER_CA, Evidence(CLUSTER_CA))
    if apiserver is not None and apiserver.has("client-ca-file"):
        flag = apiserver.flag("client-ca-file")
        verifier = (apiserver.container.host_path(flag.value) or flag.value, flag.evidence)
    return Credential(
        role=role,
        reader=config.path.rpartition("/")[2] if config.path != HOME_CONFIG else "kubectl",
        path=config.client_file or config.path,
        evidence=config.client_evidence,
        pem=config.client,
        key=private_half(node, config.key_file) if config.key_file else config.key,
        key_path=config.key_file or config.path,
        verified_by=(verifier,),
        loss=loss,
        layer=layer,
        embedded=not config.client_file,
        config=config,
    )


def private_half(node: Node, path: str) -> Pem | None:
    """What a key file holds, or what a bundle kept of it: a kubelet's file with its key cut out counts as whole."""
    found = _pem(node, path)
    kept = node.kept_keys.get(path, ())
    return replace(found, private_keys=kept) if found is not None and kept and not found.private_keys else found


def _pem(node: Node, path: str) -> Pem | None:
    try:
        return node.pem(path) if path else None
    except EvidenceMissing:
        return None
