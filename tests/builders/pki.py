"""Ways to break a tree's PKI: leafs, the kubelet's client, kubeconfigs and CAs issued anew with something wrong."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime, timedelta

import yaml

from manifests.pki.expected import KUBECONFIGS, LEAVES, Leaf, apiserver_names, etcd_names
from manifests.pki.issuing import Issued, issue, issue_authority, new_key
from tests.builders.tree import BORN, Tree

PKI = "/etc/kubernetes/pki"
CURRENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
DAY = timedelta(days=1)
YEAR = timedelta(days=365)


def reissue(
    tree: Tree,
    path: str,
    *,
    now: datetime = BORN,
    life: timedelta = YEAR,
    names: Iterable[str] | None = None,
    common_name: str = "",
    authority: Issued | None = None,
) -> None:
    """A leaf of kubeadm's table (`apiserver`, `etcd/peer`, ...) with a new key."""
    leaf = next(leaf for leaf in LEAVES if leaf.path == path)
    issued = issue(
        authority or tree.authorities[leaf.authority],
        common_name or leaf.common_name or tree.design.name,
        leaf.usages,
        now,
        new_key("ECDSA-P256"),
        leaf.organizations,
        _names(tree, leaf) if names is None else names,
        life,
    )
    tree.write(f"{PKI}/{path}.crt", issued.certificate_pem)
    tree.write(f"{PKI}/{path}.key", issued.key_pem, 0o600)


def _names(tree: Tree, leaf: Leaf) -> tuple[str, ...]:
    design = tree.design
    if leaf.names == "apiserver":
        return apiserver_names(
            design.name, design.address, design.services, endpoint=design.endpoint.rpartition(":")[0]
        )
    return etcd_names(design.name, design.address) if leaf.names == "etcd" else ()


def client(tree: Tree, name: str, now: datetime, life: timedelta = YEAR, authority: Issued | None = None) -> Issued:
    config = next(config for config in KUBECONFIGS if config.name == name)
    user = config.common_name + (tree.design.name if name == "kubelet.conf" else "")
    ca = authority or tree.authorities["ca"]
    return issue(ca, user, ("clientAuth",), now, new_key("ECDSA-P256"), config.organizations, life=life)


def rotate_kubelet(tree: Tree, issued: Issued) -> None:
    """As the kubelet does: a dated file, and the link moved to it; older files go."""
    directory = tree.place(CURRENT).parent
    for old in directory.glob("kubelet-client-*.pem"):
        old.unlink()
    dated = f"{directory.name}/kubelet-client-2026-12-01-00-00-00.pem"
    tree.write(f"/var/lib/kubelet/{dated}", issued.certificate_pem + issued.key_pem, 0o600)
    tree.place(CURRENT).symlink_to(f"/var/lib/kubelet/{dated}")


def edit_kubeconfig(tree: Tree, path: str, *, issued: Issued | None = None, ca: bytes = b"", server: str = "") -> None:
    """Embeds another client pair or CA, or points it elsewhere."""
    document = yaml.safe_load(tree.read(path))
    if issued is not None:
        document["users"][0]["user"] = {
            "client-certificate-data": base64.b64encode(issued.certificate_pem).decode(),
            "client-key-data": base64.b64encode(issued.key_pem).decode(),
        }
    if ca:
        document["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(ca).decode()
    if server:
        document["clusters"][0]["cluster"]["server"] = server
    tree.write(path, yaml.safe_dump(document, sort_keys=False), 0o600)


def new_authority(tree: Tree, path: str, now: datetime = BORN, common_name: str = "kubernetes") -> Issued:
    """Another CA of the same name in the old one's place; nothing is signed by it yet."""
    issued = issue_authority(common_name, now, new_key("ECDSA-P256"))
    tree.write(f"{PKI}/{path}.crt", issued.certificate_pem)
    tree.write(f"{PKI}/{path}.key", issued.key_pem, 0o600)
    return issued
