"""The kubeconfig that a CNI plugin uses must trust the cluster's CA.

Calico and others write one beside their network configuration. After the CA was replaced, or on a host that was part
of another cluster, the old one stays, and every new Pod fails with `certificate signed by unknown authority`. Its
token is renewed by the agent and no reason to worry.

Fix: restart the CNI's agent on this node: it writes the file anew.
"""

from collections.abc import Iterator

from drtool.core.check import NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.document import Document, Unparsable, parse
from manifests.kubeconfig import read_kubeconfig
from manifests.network.cni import conf_dir
from manifests.node import Node
from manifests.pki.credentials import CLUSTER_CA

SEVERITY = Severity.ERROR
EXPLAINS = ("node-network-unavailable",)


def find(node: Node) -> Iterator[Finding]:
    documents = list(_kubeconfigs(node))
    if not documents:
        raise NotApplicable("no CNI plugin here uses a kubeconfig")
    trusted = {certificate.fingerprint for certificate in node.pem(CLUSTER_CA).certificates}
    for document in documents:
        config = read_kubeconfig(document)
        known = {certificate.fingerprint for certificate in config.ca.certificates} if config.ca else set()
        if known and not known & trusted:
            yield Finding(
                f"{config.path} trusts another CA than this cluster's",
                (config.ca_evidence, Evidence(CLUSTER_CA, None, node.certificate(CLUSTER_CA).subject)),
            )


def _kubeconfigs(node: Node) -> Iterator[Document]:
    for entry in node.capture.below(conf_dir(node)):
        if "kubeconfig" in entry.path and entry.data:
            try:
                yield from (
                    document for document in parse(entry.path, entry.data)[:1] if isinstance(document.data, dict)
                )
            except Unparsable:
                continue
