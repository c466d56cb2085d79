"""Certificates issued anew by the CA on this node, with the names that the PKI table asks for."""

from __future__ import annotations

from drtool.core.check import EvidenceMissing
from drtool.core.errors import Refused
from drtool.core.report import Finding
from drtool.plans import site
from drtool.plans.fix import Case, Repair, together
from drtool.plans.fix.kubeconfigs import reissue_kubeconfig
from drtool.plans.fix.kubelet import reissue_client
from manifests.kubeconfig import split_url
from manifests.node import PKI, Node
from manifests.pki.certificates import Certificate
from manifests.pki.expected import LEAVES, Leaf
from manifests.steps.issuing import RequestCertificate

READERS = {
    "apiserver": "kube-apiserver",
    "apiserver-kubelet-client": "kube-apiserver",
    "front-proxy-client": "kube-apiserver",
    "apiserver-etcd-client": "kube-apiserver",
    "etcd/server": "etcd",
    "etcd/peer": "etcd",
}
KUBELET_PKI = "/var/lib/kubelet/pki/kubelet-client-"


def reissue(case: Case) -> Repair:
    return together(_repair(case, finding) for finding in case.findings)


def _repair(case: Case, finding: Finding) -> Repair:
    """By the file that the finding is about, which is the first of its evidence."""
    path = finding.evidence[0].path if finding.evidence else ""
    found = next((leaf for leaf in LEAVES if path in site.leaf_files(case.node, leaf)), None)
    if found is not None:
        return _leaf(case, found, finding)
    if path.startswith(KUBELET_PKI):
        return reissue_client(case)
    if path in case.node.kubeconfigs:
        return reissue_kubeconfig(case, path)
    return Repair(by_hand=(f"{finding.title}: it is no leaf that this node can issue; decide which file is right",))


def _leaf(case: Case, leaf: Leaf, finding: Finding) -> Repair:
    if case.id == "issuer-mismatch" and not _only_leaf(case.node, leaf):
        ca = f"{PKI}/{leaf.authority}.crt"
        return Repair(by_hand=(f"{finding.title}: no leaf is of {ca}: put the right CA back in its place",))
    reader = READERS.get(leaf.path)
    restart = frozenset({reader} if reader else ())
    try:
        return Repair((site.reissue(case.node, leaf, _address(case.node)),), restart)
    except Refused as refused:
        path, key = site.leaf_files(case.node, leaf)
        who = site.subject(case.node, leaf, _address(case.node))
        request = RequestCertificate(path.removesuffix(".crt") + ".csr", key, who)
        where = f"{refused.what}; have {request.path} signed by the CA's holder, and write the answer to {path}"
        return Repair((request,), by_hand=(f"{where}, then restart {reader or 'what reads it'}",))


def _only_leaf(node: Node, leaf: Leaf) -> bool:
    """Whether some other leaf of the same CA is signed by it: then this one is what is wrong, not the CA."""
    others = [one for one in LEAVES if one.authority == leaf.authority and one != leaf]
    return any(_signed(node, one) for one in others)


def _signed(node: Node, leaf: Leaf) -> bool:
    try:
        certificate: Certificate = node.certificate(site.leaf_files(node, leaf)[0])
        return certificate.issued_by(node.certificate(f"{PKI}/{leaf.authority}.crt"))
    except EvidenceMissing:
        return False


def _address(node: Node) -> str:
    """This node's own: the API server's, else etcd's."""
    if site.present(node, "kube-apiserver"):
        return site.advertised(node)
    return next((split_url(url)[0] for url in node.etcd.names("advertise-client-urls")), "")


BUILDERS = dict.fromkeys(
    (
        "cert-expired",
        "cert-expires-soon",
        "cert-not-yet-valid",
        "cert-of-other-node",
        "issuer-mismatch",
        "key-pair-mismatch",
        "san-missing-own-address",
        "san-missing-service-address",
        "front-proxy-pair",
    ),
    reissue,
)
