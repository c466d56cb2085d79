"""Section H of the incidents, and those of other sections that a CA or a key pair decides."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from manifests.kubeadm import Design
from manifests.pki.issuing import issue_authority, new_key
from tests.builders.pki import (
    CURRENT,
    DAY,
    PKI,
    client,
    edit_kubeconfig,
    new_authority,
    reissue,
    rotate_kubelet,
)
from tests.builders.tree import BORN, laid
from tests.incidents.nodes import causes, each_single, faults, node_tree, warned

CONFIGS = ("admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf", "kubelet.conf")


@each_single
def test_the_front_proxys_client_expired(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    reissue(tree, "front-proxy-client", life=5 * DAY)
    assert causes(tree) == ("cert-expired",)


@each_single
@pytest.mark.parametrize("suffixes", [(".crt", ".key"), (".crt",)])
def test_etcds_ca_overwritten_by_the_clusters(name: str, suffixes: tuple[str, ...], tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    for suffix in suffixes:
        shutil.copyfile(tree.place(f"{PKI}/ca{suffix}"), tree.place(f"{PKI}/etcd/ca{suffix}"))
    assert causes(tree) == ("issuer-mismatch",)


@each_single
def test_one_ca_for_both_is_legal(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    for suffix in (".crt", ".key"):
        shutil.copyfile(tree.place(f"{PKI}/ca{suffix}"), tree.place(f"{PKI}/etcd/ca{suffix}"))
    for leaf in ("etcd/server", "etcd/peer", "etcd/healthcheck-client", "apiserver-etcd-client"):
        reissue(tree, leaf, authority=tree.authorities["ca"])
    assert causes(tree) == ()


@each_single
@pytest.mark.parametrize(
    "path", ["apiserver", "etcd/server", "etcd/peer", "apiserver-etcd-client", "ca", "etcd/ca", "front-proxy-client"]
)
def test_a_key_of_another_certificate(name: str, path: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    other = "etcd/healthcheck-client" if path != "etcd/server" else "apiserver"
    shutil.copyfile(tree.place(f"{PKI}/{other}.key"), tree.place(f"{PKI}/{path}.key"))
    assert causes(tree) == ("key-pair-mismatch",)


@each_single
def test_a_kubeconfigs_halves_of_two_pairs(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    ours, theirs = client(tree, "scheduler.conf", BORN), client(tree, "scheduler.conf", BORN)
    edit_kubeconfig(tree, "/etc/kubernetes/scheduler.conf", issued=type(ours)(ours.certificate, theirs.key))
    assert causes(tree) == ("key-pair-mismatch",)


@each_single
def test_the_kubelet_kept_its_certificate_of_an_earlier_cluster(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    earlier = issue_authority("kubernetes", BORN, new_key("ECDSA-P256"))
    rotate_kubelet(tree, client(tree, "kubelet.conf", BORN, authority=earlier))
    assert causes(tree) == ("issuer-mismatch",)


@each_single
def test_the_same_in_a_plain_file(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    earlier = client(tree, "kubelet.conf", BORN, authority=issue_authority("kubernetes", BORN, new_key("ECDSA-P256")))
    tree.write(CURRENT, earlier.certificate_pem + earlier.key_pem, 0o600)
    assert causes(tree) == ("issuer-mismatch",)


@each_single
def test_kubeconfigs_trust_the_ca_of_yesterday(name: str, tmp_path: Path) -> None:
    """The CA was rotated and everything renewed that kubeadm renews: leafs, and client certificates in kubeconfigs."""
    tree = node_tree(name, tmp_path)
    ca = new_authority(tree, "ca")
    for leaf in ("apiserver", "apiserver-kubelet-client"):
        reissue(tree, leaf, authority=ca)
    for config in CONFIGS[:-1]:
        edit_kubeconfig(tree, f"/etc/kubernetes/{config}", issued=client(tree, config, BORN, authority=ca))
    assert causes(tree) == ("kubeconfig-ca-stale",)


@each_single
def test_the_same_without_renewed_clients(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    ca = new_authority(tree, "ca")
    for leaf in ("apiserver", "apiserver-kubelet-client"):
        reissue(tree, leaf, authority=ca)
    assert causes(tree) == ("kubeconfig-ca-stale",)


@each_single
@pytest.mark.parametrize("configs", [CONFIGS, ("admin.conf",), ("kubelet.conf",)])
def test_kubeconfigs_with_an_alien_ca(name: str, configs: tuple[str, ...], tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    alien = issue_authority("kubernetes", BORN, new_key("ECDSA-P256"))
    for config in configs:
        edit_kubeconfig(tree, f"/etc/kubernetes/{config}", ca=alien.certificate_pem)
    assert causes(tree) == ("kubeconfig-ca-stale",)


@each_single
def test_a_bundle_with_todays_ca_is_fine(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    alien = issue_authority("kubernetes", BORN, new_key("ECDSA-P256")).certificate_pem
    for config in CONFIGS:
        bundle = alien + tree.place(f"{PKI}/ca.crt").read_bytes()
        edit_kubeconfig(tree, f"/etc/kubernetes/{config}", ca=bundle)
    assert causes(tree) == ()


@each_single
def test_the_cas_file_alone_was_replaced(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    new_authority(tree, "ca")
    assert causes(tree) == ("issuer-mismatch",)


@each_single
@pytest.mark.parametrize("newest_first", [True, False])
def test_a_bundle_in_the_signing_file(name: str, newest_first: bool, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    second = issue_authority("kubernetes", BORN, new_key("ECDSA-P256")).certificate_pem
    today = tree.place(f"{PKI}/ca.crt").read_bytes()
    tree.write(f"{PKI}/ca.crt", second + today if newest_first else today + second)
    assert causes(tree) == ("ca-bundle-as-signing-cert",)


@each_single
def test_an_external_ca_is_legal(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.remove(f"{PKI}/ca.key")
    assert causes(tree) == ()
    assert warned(tree, "ca-key-missing")


@each_single
def test_the_front_proxys_pair_of_another_ca(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    new_authority(tree, "front-proxy-ca", common_name="front-proxy-ca")
    assert causes(tree) == ("front-proxy-pair",)


@each_single
@pytest.mark.parametrize("half", ["sa.pub", "sa.key"])
def test_half_of_another_sa_pair(name: str, half: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    other = laid(tmp_path / "other")
    tree.write(f"{PKI}/{half}", other.read(f"{PKI}/{half}"), 0o600)
    expected = () if name == "made" else ("sa-pair-broken",)  # the made trees share one pair
    assert causes(tree) == expected


@each_single
def test_the_issuer_was_replaced(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.set_flag("kube-apiserver", "service-account-issuer", "https://issuer.example.org")
    assert causes(tree) == ("sa-issuer-changed",)


@each_single
@pytest.mark.parametrize("path", ["ca.crt", "etcd/server.crt", "apiserver.key", "sa.pub", "etcd/ca.crt"])
@pytest.mark.parametrize("data", ["", "garbage\n", "-----BEGIN CERTIFICATE-----\nMIIB\n"])
def test_an_empty_or_torn_file(name: str, path: str, data: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(f"{PKI}/{path}", data)
    assert causes(tree) == ("pem-empty-or-garbage",)
    assert "issuer-mismatch" not in faults(tree)


@each_single
def test_a_serving_pair_of_another_cluster(name: str, tmp_path: Path) -> None:
    """Whatever names it carries, it is replaced as a whole: one cause."""
    tree = node_tree(name, tmp_path / "one")
    other = laid(tmp_path / "two", Design("cp-9", "192.0.2.9", algorithm="RSA-2048"))
    for suffix in (".crt", ".key"):
        tree.write(f"{PKI}/apiserver{suffix}", other.read(f"{PKI}/apiserver{suffix}"))
    assert causes(tree) == ("issuer-mismatch",)


@each_single
def test_two_certificates_exchanged(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    one, other = (f"{PKI}/{leaf}.crt" for leaf in ("apiserver-kubelet-client", "apiserver-etcd-client"))
    first, second = tree.read(one), tree.read(other)
    tree.write(one, second)
    tree.write(other, first)
    assert causes(tree) == ("key-pair-mismatch",)


@pytest.mark.parametrize("suffixes", [(".crt", ".key"), (".crt",)])
def test_the_ca_of_external_etcd_overwritten(suffixes: tuple[str, ...], tmp_path: Path) -> None:
    tree = node_tree("external-etcd-1.36", tmp_path)
    for suffix in suffixes:
        shutil.copyfile(tree.place(f"{PKI}/ca{suffix}"), tree.place(f"{PKI}/etcd/ca{suffix}"))
    assert causes(tree) == ("issuer-mismatch",)


def test_external_members_may_trust_another_ca_than_signed_them(tmp_path: Path) -> None:
    tree = node_tree("external-etcd-1.36", tmp_path)
    servers = issue_authority("etcd servers", BORN, new_key("ECDSA-P256"))
    tree.write(f"{PKI}/etcd/ca.crt", servers.certificate_pem)
    assert causes(tree) == ()
