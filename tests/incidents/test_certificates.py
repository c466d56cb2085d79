"""Section B of the incidents, and those of others that certificates decide: expiry, reload, the kubelet's client."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.builders.pki import CURRENT, DAY, PKI, client, edit_kubeconfig, reissue, rotate_kubelet
from tests.builders.tree import BORN, Tree, laid
from tests.incidents.nodes import causes, each_single, faults, node_tree, warned

EXPIRED = 'err="part of the existing bootstrap client certificate in /etc/kubernetes/kubelet.conf is expired"'
NO_BOOTSTRAP = (
    'err="failed to run Kubelet: unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf: no'
    ' such file or directory"'
)
SHORT = 5 * DAY


@each_single
def test_the_kubelets_client_certificate_expired(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    rotate_kubelet(tree, client(tree, "kubelet.conf", BORN, SHORT))
    tree.journal("kubelet", EXPIRED, NO_BOOTSTRAP)
    assert causes(tree) == ("cert-expired",)
    assert warned(tree, "bootstrap-kubeconfig-missing")


@each_single
def test_it_expired_in_a_plain_file(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    spent = client(tree, "kubelet.conf", BORN, SHORT)
    tree.write(CURRENT, spent.certificate_pem + spent.key_pem, 0o600)
    assert causes(tree) == ("cert-expired",)


@each_single
def test_everything_expired_after_two_years(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    assert causes(tree, datetime(2028, 12, 15, tzinfo=UTC)) == ("cert-expired",)
    assert causes(tree, datetime(2048, 12, 15, tzinfo=UTC)) == ("cert-expired",)


@each_single
def test_the_clock_is_years_behind(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    assert causes(tree, datetime(2020, 1, 1, tzinfo=UTC)) == ("cert-not-yet-valid",)


@each_single
def test_a_certificate_from_the_future(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    reissue(tree, "apiserver", now=datetime(2027, 6, 1, tzinfo=UTC))
    assert causes(tree) == ("cert-not-yet-valid",)


@each_single
@pytest.mark.parametrize(
    "leaf", ["apiserver", "etcd/server", "etcd/peer", "apiserver-etcd-client", "apiserver-kubelet-client"]
)
def test_a_leaf_expired(name: str, leaf: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    reissue(tree, leaf, life=SHORT)
    assert causes(tree) == ("cert-expired",)


@each_single
@pytest.mark.parametrize("config", ["controller-manager.conf", "scheduler.conf"])
def test_a_controllers_certificate_expired(name: str, config: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    edit_kubeconfig(tree, f"/etc/kubernetes/{config}", issued=client(tree, config, BORN, SHORT))
    assert causes(tree) == ("cert-expired",)


@each_single
@pytest.mark.parametrize("life", [SHORT, 300 * DAY])
def test_kubelet_conf_embeds_a_certificate_of_its_own(name: str, life: timedelta, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    edit_kubeconfig(tree, "/etc/kubernetes/kubelet.conf", issued=client(tree, "kubelet.conf", BORN, life))
    assert causes(tree) == ("kubelet-client-link",)


def target(tree: Tree) -> str:
    return str(tree.place(CURRENT).readlink())


def without_rotation(tree: Tree) -> None:
    tree.sub("/var/lib/kubelet/config.yaml", "rotateCertificates: true", "rotateCertificates: false")
    for path in list(tree.place(CURRENT).parent.iterdir()):
        path.unlink()


@each_single
def test_embedded_is_legal_without_rotation(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    without_rotation(tree)
    edit_kubeconfig(tree, "/etc/kubernetes/kubelet.conf", issued=client(tree, "kubelet.conf", BORN))
    assert causes(tree) == ()


@each_single
def test_embedded_without_rotation_expires_like_any(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    without_rotation(tree)
    edit_kubeconfig(tree, "/etc/kubernetes/kubelet.conf", issued=client(tree, "kubelet.conf", BORN, SHORT))
    assert causes(tree) == ("cert-expired",)


@each_single
def test_the_link_dangles(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.remove(target(tree))
    assert causes(tree) == ("kubelet-client-link",)


@each_single
def test_a_plain_file_in_the_links_place(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(CURRENT, tree.read(target(tree)), 0o600)
    assert causes(tree) == ("kubelet-client-link",)


@each_single
@pytest.mark.parametrize("through_the_link", [True, False])
def test_an_empty_client_certificate(name: str, through_the_link: bool, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write(target(tree) if through_the_link else CURRENT, "", 0o600)
    assert causes(tree) == ("kubelet-client-link",)


@each_single
def test_a_client_certificate_below_var_run(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    lost = "/var/run/kubernetes/kubelet-client.crt"
    tree.replace("/etc/kubernetes/kubelet.conf", CURRENT, lost)
    assert causes(tree) == ("kubelet-client-link",)


REFUSED = (
    'E1214 23:00:00.000000 1 x] "Unable to authenticate the request" err="[x509: certificate has expired or is not yet'
    ' valid: current time 2026-12-14T23:00:00Z is after 2026-12-09T00:00:00Z, verifying certificate SN=1]"'
)
LOGGED = (
    ("2026-12-01T00:00:00.000000000Z", 'I1201 00:00:00.000000 1 server.go:1] "Version" version="v1.37.2"'),
    ("2026-12-14T23:00:00.000000000Z", REFUSED),
)


def renewed(tree: Tree, written: datetime) -> None:
    pod = f"/var/log/pods/kube-system_kube-apiserver-{tree.design.name}_0123/kube-apiserver"
    old = tree.place("/var/log/pods")
    if old.is_dir():
        tree.remove("/var/log/pods")
    tree.write(f"{pod}/0.log", "".join(f"{time} stderr F {text}\n" for time, text in LOGGED))
    for path in (*tree.place(PKI).rglob("*.crt"), *tree.place("/etc/kubernetes").glob("*.conf")):
        os.utime(path, (written.timestamp(), written.timestamp()))


@each_single
def test_renewed_and_not_restarted(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    renewed(tree, datetime(2026, 12, 10, tzinfo=UTC))
    assert causes(tree) == ("renewed-not-reloaded",)


@pytest.mark.parametrize("written", [datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 14, 23, 30, tzinfo=UTC)])
def test_written_before_the_start_or_after_the_errors(written: datetime, tmp_path: Path) -> None:
    tree = laid(tmp_path)
    renewed(tree, written)
    assert faults(tree) == ()


@each_single
def test_a_stale_copy_of_admin_conf_is_a_risk(name: str, tmp_path: Path) -> None:
    tree = node_tree(name, tmp_path)
    tree.write("/root/.kube/config", tree.read("/etc/kubernetes/admin.conf"), 0o600)
    edit_kubeconfig(tree, "/root/.kube/config", issued=client(tree, "admin.conf", BORN, SHORT))
    assert causes(tree) == ()
    assert warned(tree, "cert-expired")


@each_single
def test_a_green_table_hides_the_kubelets_certificate(name: str, tmp_path: Path) -> None:
    """A cause among decoys: every leaf of the PKI is fresh, the bootstrap file is rightly missing."""
    tree = node_tree(name, tmp_path)
    for leaf in ("apiserver", "etcd/server", "etcd/peer", "front-proxy-client"):
        reissue(tree, leaf)
    rotate_kubelet(tree, client(tree, "kubelet.conf", BORN, SHORT))
    tree.journal("kubelet", NO_BOOTSTRAP)
    tree.log("kube-apiserver", "connection refused 127.0.0.1:2379")
    assert causes(tree) == ("cert-expired",)


@each_single
def test_a_moved_address_beside_an_expired_admin_copy(name: str, tmp_path: Path) -> None:
    """A cause among decoys."""
    tree = node_tree(name, tmp_path)
    tree.addresses("192.0.2.67")
    tree.write("/root/.kube/config", tree.read("/etc/kubernetes/admin.conf"), 0o600)
    edit_kubeconfig(tree, "/root/.kube/config", issued=client(tree, "admin.conf", BORN, SHORT))
    edit_kubeconfig(tree, "/etc/kubernetes/admin.conf", issued=client(tree, "admin.conf", BORN, SHORT))
    for file in list(tree.place("/etc/cni/net.d").glob("*")) if tree.place("/etc/cni/net.d").is_dir() else []:
        file.unlink()
    assert causes(tree) == ("node-address-changed",)


@each_single
def test_a_full_disk_left_an_empty_certificate(name: str, tmp_path: Path) -> None:
    """A cause among decoys: the disk is free again, the log remembers."""
    tree = node_tree(name, tmp_path)
    tree.write(target(tree), "", 0o600)
    tree.journal(
        "kubelet",
        'E1214 22:00:00.000000 1 x.go:1] "Failed" err="write /var/lib/kubelet/pki/x: no space left on device"',
    )
    assert causes(tree) == ("disk-full",)
