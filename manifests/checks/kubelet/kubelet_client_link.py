"""kubelet.conf does not lead to the client certificate that rotation keeps fresh.

The kubelet writes each new certificate to a dated file and moves the link kubelet-client-current.pem to it, which
kubelet.conf must name. A certificate embedded in kubelet.conf (from before kubeadm 1.17), a plain file in the link's
place (rotation refuses it: "expected ... to be a symlink but it is a file"), a dangling link, an empty file or a path
below /var/run, which a reboot empties, all end the same: the kubelet exits, or its certificate runs out while
check-expiration is green. Embedded data is fine where rotation is off and until it expires.

Fix: point the link to the newest kubelet-client-<date>.pem, and kubelet.conf to the link; where none is left,
`kubeadm init phase kubeconfig kubelet`, then restart the kubelet.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.kubeconfig import Kubeconfig
from manifests.layout import Layout
from manifests.node import Node
from manifests.pki.certificates import utc
from manifests.pki.credentials import CLUSTER_CA
from manifests.pki.kubelet_client import CURRENT, rotated, rotates
from manifests.pki.trust import authorities, trusted

SEVERITY = Severity.CRITICAL
MEMORY = ("/run/", "/var/run/")
FIX = Fix("drtool fix kubelet-client-link", "points the link and kubelet.conf to the newest certificate there is")
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"


def find(node: Node) -> Iterator[Finding]:
    if node.layout not in {Layout.STACKED, Layout.EXTERNAL_ETCD, Layout.WORKER}:
        raise NotApplicable(f"the kubelet of a {node.layout} node has no client certificate of kubeadm's")
    if node.entry(KUBELET_CONF).kind == "absent":
        yield from _gone(node)
    config = node.kubeconfig("kubelet.conf")
    if config.client_file:
        yield from _linked(node, config, config.client_file)
    elif config.client is not None and config.client.certificates:
        yield from _embedded(node, config)


def _gone(node: Node) -> Iterator[Finding]:
    """A file that a copy lacks is not missing on the host; here all around it is there, or the kubelet says so."""
    said = [line for line in node.journal("kubelet") if "unable to load bootstrap kubeconfig" in line.text]
    around = {"controller-manager.conf", "scheduler.conf"} <= set(node.capture.listings.get("/etc/kubernetes", ()))
    if around and (said or (node.kubelet.config is not None and node.entry(CURRENT).kind != "absent")):
        evidence = (Evidence(KUBELET_CONF), *(line.evidence for line in said[-1:]))
        yield Finding(f"{KUBELET_CONF} is gone", evidence, fix=FIX)


def _linked(node: Node, config: Kubeconfig, path: str) -> Iterator[Finding]:
    entry = node.entry(path)
    here = Evidence(path, None, f"-> {entry.target}" if entry.target else "")
    if entry.kind == "dangling":
        yield Finding(f"{path} points to {entry.target}, which is not there", (config.client_evidence, here), fix=FIX)
    elif path.startswith(MEMORY):
        lost = entry.kind == "absent"
        state = "is gone" if lost else "will not outlive a reboot"
        severity = Severity.CRITICAL if lost else Severity.WARNING
        title = f"kubelet.conf names {path}, which lies in memory and {state}"
        yield Finding(title, (config.client_evidence, here), severity, fix=FIX)
    elif entry.kind == "absent":
        if path.rpartition("/")[0] not in node.capture.listings:
            raise EvidenceMissing(f"{path.rpartition('/')[0]} is not in this tree")
        yield Finding(f"kubelet.conf names {path}, which is not there", (config.client_evidence, here), fix=FIX)
    elif entry.data is None:
        raise EvidenceMissing(f"{path}: {entry.error or entry.kind}")
    elif not entry.data.strip():
        yield Finding(f"{path} is empty", (config.client_evidence, here), fix=FIX)
    elif entry.kind == "file" and path == CURRENT:
        title = f"{path} is a plain file: rotation refuses to replace it"
        yield Finding(title, (config.client_evidence, here), _plain(node, config), fix=FIX)


def _plain(node: Node, config: Kubeconfig) -> Severity:
    """What is wrong in the file itself (expired, of another CA, no pair) is the cause, and has a check of its own."""
    if config.client is None or not config.client.certificates:
        return Severity.WARNING
    certificate = config.client.certificates[0]
    try:
        ours = trusted(config.client, authorities(node, CLUSTER_CA))
    except EvidenceMissing:
        ours = True
    pair = config.key is None or not config.key.private_keys or certificate.public_key in config.key.private_keys
    sound = ours and pair and certificate.not_before <= node.at <= certificate.not_after
    return Severity.ERROR if sound else Severity.WARNING


def _embedded(node: Node, config: Kubeconfig) -> Iterator[Finding]:
    newer = rotated(node)
    certificate = config.client.certificates[0] if config.client else None
    if certificate is None or (not rotates(node) and (newer is None or certificate.not_after >= node.at)):
        return
    severity = Severity.CRITICAL if certificate.not_after < node.at else Severity.ERROR
    if newer is None:  # kubeadm init leaves it so until its last phase; expiry has a check of its own
        severity = Severity.WARNING
    until = f"valid until {utc(certificate.not_after)}"
    evidence = (config.client_evidence, *((newer.says(f"valid until {utc(newer.not_after)}"),) if newer else ()))
    yield Finding(
        f"kubelet.conf holds a certificate of its own ({until}) instead of naming {CURRENT}",
        evidence,
        severity,
        fix=FIX,
    )
