"""Service account tokens: who signs with which key, which keys verify, which issuers are accepted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Layer
from manifests.node import Node
from manifests.pki.credentials import private_half
from manifests.pod import Flag


@dataclass(frozen=True, slots=True)
class Signer:
    """`key` is the SHA-256 of the public half."""

    program: str
    path: str
    key: str
    layer: Layer
    evidence: Evidence


_SIGNING = (
    ("kube-apiserver", "API server", "service-account-signing-key-file", Layer.APISERVER),
    ("kube-controller-manager", "controller-manager", "service-account-private-key-file", Layer.CONTROLLERS),
)


def signers(node: Node) -> Iterator[Signer]:
    """EvidenceMissing where a key that a flag names cannot be read."""
    for program, name, flag_name, layer in _SIGNING:
        component = node.components.get(program)
        if component is None or not component.has(flag_name):
            continue
        flag = component.flag(flag_name)
        path = component.container.host_path(flag.value) or flag.value
        pem = private_half(node, path)
        if pem is None or not pem.private_keys:
            raise EvidenceMissing(f"{path}: {pem.problem if pem else 'not in this tree'}")
        yield Signer(name, path, pem.private_keys[0], layer, flag.evidence)


def verifying_keys(node: Node) -> frozenset[str]:
    """Public keys, private ones and certificates all verify. EvidenceMissing where a named file cannot be read."""
    found: set[str] = set()
    for flag in node.apiserver.all("service-account-key-file"):
        path = node.apiserver.container.host_path(flag.value) or flag.value
        pem = private_half(node, path)
        keys = (
            (*pem.public_keys, *pem.private_keys, *(c.public_key for c in pem.certificates)) if pem is not None else ()
        )
        if not keys:
            raise EvidenceMissing(f"{path}: {pem.problem if pem else 'not in this tree'}")
        found.update(keys)
    return frozenset(found)


def issuers(node: Node) -> tuple[Flag, ...]:
    """The first one signs; since Kubernetes 1.22 the further ones are accepted too."""
    return node.apiserver.all("service-account-issuer")


def configured_issuers(node: Node) -> tuple[tuple[str, ...], Evidence]:
    """What kubeadm's configuration makes it: its extra argument, else the cluster's domain.

    EvidenceMissing where the configuration is not in the tree. Both shapes of extraArgs are read: the map up to
    v1beta3 and the list of v1beta4.
    """
    configuration = node.cluster_configuration
    extra = configuration.get("apiServer", "extraArgs", default={})
    evidence = configuration.evidence("apiServer", "extraArgs")
    if isinstance(extra, dict) and extra.get("service-account-issuer"):
        return (str(extra["service-account-issuer"]),), evidence
    if isinstance(extra, list):
        named = [a for a in extra if isinstance(a, dict) and a.get("name") == "service-account-issuer"]
        if named:
            return tuple(str(argument.get("value") or "") for argument in named), evidence
    domain = configuration.get("networking", "dnsDomain", default="cluster.local")
    return (f"https://kubernetes.default.svc.{domain}",), configuration.evidence("networking", "dnsDomain")
