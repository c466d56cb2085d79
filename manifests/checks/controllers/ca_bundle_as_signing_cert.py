"""The controller-manager signs with one CA, and its file holds several.

During a rotation people append the new CA to ca.crt. Everywhere else a bundle is right (--client-ca-file,
--root-ca-file), but the controller-manager exits when --cluster-signing-cert-file has more than one certificate.

Fix: keep the one CA that signs in a file of its own, and name that file in the flag.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.node import Node
from manifests.pki.trust import authorities

SEVERITY = Severity.ERROR
FLAGS = (
    "cluster-signing-cert-file",
    "cluster-signing-kubelet-serving-cert-file",
    "cluster-signing-kubelet-client-cert-file",
    "cluster-signing-kube-apiserver-client-cert-file",
    "cluster-signing-legacy-unknown-cert-file",
)


def find(node: Node) -> Iterator[Finding]:
    manager = node.controller_manager
    for name in FLAGS:
        if not manager.value(name):
            continue
        flag = manager.flag(name)
        path = manager.container.host_path(flag.value) or flag.value
        found = authorities(node, path)
        if len(found) > 1:
            yield Finding(
                f"{path} holds {len(found)} certificates, and --{name} needs exactly one",
                (flag.evidence, *(certificate.evidence for certificate in found[:3])),
            )
