"""A certificate, key or kubeconfig in use is empty or cannot be read.

A disk that ran full, a power cut or an interrupted copy leaves files of size 0 or half a PEM block; whoever reads them
exits at its next start. CRLF line ends and text around the blocks are fine, as they are for Go. Encrypted keys are not:
no component asks for a passphrase. An empty certificate of the kubelet's is named by kubelet-client-link.

Fix: restore the file from a backup, or delete it and let `kubeadm init phase certs` (or kubeconfig) make it anew. Never
make a new CA over one that other nodes still use.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Layer, Severity
from manifests.node import PKI, Node
from manifests.pki.certificates import Pem
from manifests.pki.credentials import credentials
from manifests.pki.expected import AUTHORITIES

SEVERITY = Severity.CRITICAL
KUBECONFIGS = {
    "kubelet.conf": (Severity.CRITICAL, Layer.KUBELET),
    "controller-manager.conf": (Severity.ERROR, Layer.CONTROLLERS),
    "scheduler.conf": (Severity.ERROR, Layer.CONTROLLERS),
    "admin.conf": (Severity.ERROR, Layer.APISERVER),
    "super-admin.conf": (Severity.WARNING, Layer.APISERVER),
}


def find(node: Node) -> Iterator[Finding]:
    if not any(entry.data is not None for entry in node.capture.matching(r"/etc/kubernetes/(pki/.*|[^/]+\.conf)")):
        raise EvidenceMissing("no file of the PKI and no kubeconfig in this tree")
    yield from _kubeconfigs(node)
    for path, (severity, layer) in _in_use(node).items():
        pem = _pem(node, path)
        if pem is not None and pem.problem and not (pem.certificates or pem.private_keys or pem.public_keys):
            yield Finding(f"{path}: {pem.problem}", (_evidence(node, path),), severity, layer)


def _in_use(node: Node) -> dict[str, tuple[Severity, Layer]]:
    """Files that a flag, a kubeconfig or kubeadm's table names, with what hangs on each."""
    found: dict[str, tuple[Severity, Layer]] = {}
    for credential in credentials(node):
        if not credential.embedded:
            for path in (credential.path, credential.key_path):
                found.setdefault(path, (credential.loss, credential.layer))
    for authority in AUTHORITIES:
        severity = Severity.ERROR if authority.path == "front-proxy-ca" else Severity.CRITICAL
        layer = Layer.ETCD if authority.path == "etcd/ca" else Layer.APISERVER
        found.setdefault(f"{PKI}/{authority.path}.crt", (severity, layer))
        found.setdefault(f"{PKI}/{authority.path}.key", (Severity.ERROR, Layer.CONTROLLERS))
    found[f"{PKI}/sa.pub"] = (Severity.CRITICAL, Layer.APISERVER)
    found[f"{PKI}/sa.key"] = (Severity.CRITICAL, Layer.APISERVER)
    return found


def _pem(node: Node, path: str) -> Pem | None:
    """None where there is nothing to read, and for an empty file of the kubelet's rotation."""
    if path.startswith("/var/lib/kubelet/") and not (node.entry(path).data or b"").strip():
        return None
    try:
        return node.pem(path)
    except (EvidenceMissing, NotApplicable):
        return None


def _evidence(node: Node, path: str) -> Evidence:
    return Evidence(path, None, f"{node.entry(path).size} bytes")


def _kubeconfigs(node: Node) -> Iterator[Finding]:
    for name, (severity, layer) in KUBECONFIGS.items():
        path = f"/etc/kubernetes/{name}"
        entry, config = node.entry(path), node.kubeconfigs.get(path)
        if entry.data is None:
            continue
        if config is None:
            what = "is empty" if not entry.data.strip() else "is no kubeconfig"
            yield Finding(f"{path} {what}", (_evidence(node, path),), severity, layer)
        elif config.problem:
            yield Finding(f"{path}: {config.problem}", (config.client_evidence,), severity, layer)
