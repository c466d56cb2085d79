"""Checks of certificates and keys: nothing on a healthy node, each one on the node that is broken for it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from drtool.commands.check import judged
from drtool.core.report import Outcome, Severity, Status
from manifests.kubeadm import Design
from manifests.node import Node
from manifests.pki.issuing import Issued, issue, issue_authority, new_key
from tests.builders.pki import CURRENT, DAY, PKI, client, edit_kubeconfig, new_authority, reissue, rotate_kubelet
from tests.builders.tree import BORN, NOW, Tree, laid

JOURNAL = "2026-12-14T{hour}:00:00+00:00 cp-1 kubelet[812]: {text}\n"
BROKEN: dict[str, Callable[[Tree], object]] = {
    "cert-expired": lambda tree: reissue(tree, "apiserver", life=5 * DAY),
    "cert-not-yet-valid": lambda tree: reissue(tree, "etcd/peer", now=NOW + DAY),
    "cert-expires-soon": lambda tree: reissue(tree, "apiserver", life=30 * DAY),
    "clock-jump": lambda tree: tree.write(
        "/drtool/journal/kubelet.log", JOURNAL.format(hour=21, text="a") + JOURNAL.format(hour=20, text="b")
    ),
    "san-missing-own-address": lambda tree: reissue(tree, "etcd/server", names=("cp-1", "localhost", "127.0.0.1")),
    "san-missing-service-address": lambda tree: reissue(
        tree, "apiserver", names=("cp-1", "kubernetes.default.svc", "192.0.2.111")
    ),
    "cert-of-other-node": lambda tree: reissue(tree, "etcd/peer", names=("cp-9", "192.0.2.9"), common_name="cp-9"),
    "key-pair-mismatch": lambda tree: tree.write(f"{PKI}/etcd/peer.key", tree.read(f"{PKI}/etcd/server.key")),
    "issuer-mismatch": lambda tree: reissue(tree, "apiserver-etcd-client", authority=tree.authorities["ca"]),
    "kubeconfig-ca-stale": lambda tree: edit_kubeconfig(
        tree, "/etc/kubernetes/scheduler.conf", ca=tree.authorities["etcd/ca"].certificate_pem
    ),
    "ca-bundle-as-signing-cert": lambda tree: tree.write(
        f"{PKI}/ca.crt", tree.read(f"{PKI}/ca.crt") + tree.read(f"{PKI}/front-proxy-ca.crt")
    ),
    "ca-key-missing": lambda tree: tree.remove(f"{PKI}/etcd/ca.key"),
    "sa-pair-broken": lambda tree: tree.write(f"{PKI}/sa.key", tree.read(f"{PKI}/ca.key")),
    "sa-issuer-changed": lambda tree: tree.set_flag("kube-apiserver", "service-account-issuer", "https://example.org"),
    "front-proxy-pair": lambda tree: reissue(tree, "front-proxy-client", authority=tree.authorities["ca"]),
    "kubelet-client-link": lambda tree: tree.remove(str(tree.place(CURRENT).readlink())),
    "bootstrap-kubeconfig-missing": lambda tree: tree.journal(
        "kubelet", "unable to load bootstrap kubeconfig: stat /etc/kubernetes/bootstrap-kubelet.conf: no such file"
    ),
    "pem-empty-or-garbage": lambda tree: tree.write(f"{PKI}/apiserver.crt", ""),
    "key-file-readable": lambda tree: tree.place("/etc/kubernetes/admin.conf").chmod(0o644),
}


def outcomes(node: Node) -> dict[str, Outcome]:
    """Those of checks that can weigh other nodes too; here there are none."""
    return {outcome.id: outcome for outcome in judged(node).outcomes}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


@pytest.mark.parametrize("id_", BROKEN)
def test_a_broken_node_fails(id_: str, tree: Tree) -> None:
    BROKEN[id_](tree)
    assert outcomes(tree.node())[id_].status is Status.FAILED


@pytest.mark.parametrize("algorithm", ["ECDSA-P256", "RSA-2048"])
def test_a_healthy_node_passes(algorithm: str, tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(algorithm=algorithm, endpoint="k8s.example.org:6443"))
    tree.log("etcd", "ready")
    tree.journal("kubelet", "ready")
    found = outcomes(tree.node())
    for id_ in (*BROKEN, "san-missing-endpoint", "renewed-not-reloaded"):
        assert found[id_].status is Status.PASSED, found[id_]


def test_a_tree_without_any_of_it_is_unknown_or_skipped(tree: Tree) -> None:
    tree.remove("/etc/kubernetes/pki")
    for name in ("admin", "super-admin", "kubelet", "controller-manager", "scheduler"):
        tree.remove(f"/etc/kubernetes/{name}.conf")
    tree.remove("/var/lib/kubelet/pki")
    found = outcomes(tree.node())
    for id_ in set(BROKEN) - {"sa-issuer-changed", "bootstrap-kubeconfig-missing", "key-file-readable"}:
        assert found[id_].status in {Status.UNKNOWN, Status.SKIPPED}, found[id_]


def test_ed25519_and_pkcs8_pairs(tree: Tree) -> None:
    from cryptography.hazmat.primitives.asymmetric import ed25519

    ca, key = tree.authorities["etcd/ca"], ed25519.Ed25519PrivateKey.generate()
    issued = issue(ca, "cp-1", ("serverAuth", "clientAuth"), BORN, key, names=("cp-1", "192.0.2.111", "127.0.0.1"))  # type: ignore[arg-type]
    tree.write(f"{PKI}/etcd/peer.crt", issued.certificate_pem)
    pkcs8 = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    tree.write(f"{PKI}/etcd/peer.key", pkcs8, 0o600)
    found = outcomes(tree.node())
    for id_ in ("key-pair-mismatch", "issuer-mismatch", "pem-empty-or-garbage", "san-missing-own-address"):
        assert found[id_].status is Status.PASSED


def test_crlf_and_text_around_the_blocks_are_fine(tree: Tree) -> None:
    text = "Certificate:\n  Data:\n" + tree.read(f"{PKI}/apiserver.crt")
    tree.write(f"{PKI}/apiserver.crt", text.replace("\n", "\r\n"))
    found = outcomes(tree.node())
    assert found["pem-empty-or-garbage"].status is found["issuer-mismatch"].status is Status.PASSED


def test_an_intermediate_beside_the_leaf_leads_to_the_root(tree: Tree) -> None:
    root = tree.authorities["ca"]
    key = new_key("ECDSA-P256")
    between = Issued(_signed_ca(root, key), key)
    reissue(tree, "apiserver", authority=between)
    tree.write(f"{PKI}/apiserver.crt", tree.read(f"{PKI}/apiserver.crt") + between.certificate_pem.decode())
    assert outcomes(tree.node())["issuer-mismatch"].status is Status.PASSED


def _signed_ca(root: Issued, key: object) -> object:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    template = issue_authority("between", BORN, key).certificate  # type: ignore[arg-type]
    builder = x509.CertificateBuilder(
        root.certificate.subject,
        template.subject,
        template.public_key(),
        x509.random_serial_number(),
        template.not_valid_before_utc,
        template.not_valid_after_utc,
        list(template.extensions),
    )
    return builder.sign(root.key, hashes.SHA256())


def test_certificates_without_key_ids_are_verified_by_signature(tree: Tree) -> None:
    plain = _without_ids(tree.authorities["etcd/ca"])
    tree.write(f"{PKI}/etcd/ca.crt", plain.certificate_pem)
    assert outcomes(tree.node())["issuer-mismatch"].status is Status.PASSED
    other = _without_ids(issue_authority("etcd-ca", BORN, new_key("ECDSA-P256")))
    tree.write(f"{PKI}/etcd/ca.crt", other.certificate_pem)
    assert outcomes(tree.node())["issuer-mismatch"].status is Status.FAILED


def _without_ids(ca: Issued) -> Issued:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    old = ca.certificate
    extensions = [e for e in old.extensions if not isinstance(e.value, x509.SubjectKeyIdentifier)]
    builder = x509.CertificateBuilder(
        old.issuer,
        old.subject,
        old.public_key(),
        x509.random_serial_number(),
        old.not_valid_before_utc,
        old.not_valid_after_utc,
        extensions,
    )
    return Issued(builder.sign(ca.key, hashes.SHA256()), ca.key)


def test_old_files_of_rotation_are_nobodys(tree: Tree) -> None:
    old = client(tree, "kubelet.conf", BORN, DAY)
    tree.write("/var/lib/kubelet/pki/kubelet-client-2026-01-01-00-00-00.pem", old.certificate_pem + old.key_pem)
    reissue(tree, "apiserver-kubelet-client")
    tree.write("/var/lib/kubelet/pki/kubelet.crt", old.certificate_pem)
    assert outcomes(tree.node())["cert-expired"].status is Status.PASSED


def test_an_expired_ca_speaks_for_its_leafs(tree: Tree) -> None:
    ca = _short_lived(tree)
    reissue(tree, "etcd/peer", authority=ca, life=5 * DAY)
    findings = outcomes(tree.node())["cert-expired"].findings
    assert [finding.title for finding in findings] == ["The CA etcd/ca.crt expired 9 days ago"]


def _short_lived(tree: Tree) -> Issued:
    """etcd's CA with its key, its name and an end that is past."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    old = tree.authorities["etcd/ca"]
    builder = x509.CertificateBuilder(
        old.certificate.issuer,
        old.certificate.subject,
        old.certificate.public_key(),
        x509.random_serial_number(),
        old.certificate.not_valid_before_utc,
        BORN + 5 * DAY,
        list(old.certificate.extensions),
    )
    issued = Issued(builder.sign(old.key, hashes.SHA256()), old.key)
    tree.write(f"{PKI}/etcd/ca.crt", issued.certificate_pem)
    return issued


def test_a_bundle_keeps_public_halves_of_keys(tree: Tree) -> None:
    kept = {path: list(pem.private_keys) for path, pem in tree.node().pems.items() if pem.private_keys}
    for path in kept:
        if path.endswith(".key"):
            tree.remove(path)
        elif not tree.place(path).is_symlink():
            tree.write(path, tree.read(path).split("-----BEGIN EC PRIVATE KEY")[0])
    tree.write("/drtool/keys.json", json.dumps(kept))
    found = outcomes(tree.node())
    for id_ in ("key-pair-mismatch", "sa-pair-broken", "ca-key-missing", "pem-empty-or-garbage"):
        assert found[id_].status is Status.PASSED, found[id_]


def test_two_issuers_are_a_rotation(tree: Tree) -> None:
    path = "/etc/kubernetes/manifests/kube-apiserver.yaml"
    old = "    - --service-account-issuer=https://kubernetes.default.svc.cluster.local\n"
    tree.replace(path, old, "    - --service-account-issuer=https://example.org\n" + old)
    assert outcomes(tree.node())["sa-issuer-changed"].status is Status.PASSED


def test_an_issuer_of_kubeadms_configuration_is_fine(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "service-account-issuer", "https://example.org")
    configuration = "/etc/kubernetes/kubeadm-config.yaml"
    extra = "apiServer:\n  extraArgs:\n  - name: service-account-issuer\n    value: https://example.org\n"
    tree.write(configuration, tree.read(configuration) + extra)
    assert outcomes(tree.node())["sa-issuer-changed"].status is Status.PASSED


def test_an_api_server_without_an_issuer(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "service-account-issuer", None)
    found = outcomes(tree.node())
    assert found["sa-issuer-changed"].status is Status.SKIPPED
    assert found["flag-unknown-or-removed"].status is Status.FAILED


def test_the_endpoint_must_be_covered_unless_the_balancer_ends_tls(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(endpoint="k8s.example.org:6443"))
    reissue(tree, "apiserver", names=("cp-1", "kubernetes.default.svc", "10.96.0.1", "192.0.2.111"))
    assert outcomes(tree.node())["san-missing-endpoint"].status is Status.FAILED
    tree.write("/etc/haproxy/haproxy.cfg", "frontend api\n  bind *:443 ssl crt /etc/haproxy/api.pem\n  mode http\n")
    assert outcomes(tree.node())["san-missing-endpoint"].status is Status.SKIPPED


def test_a_name_that_covers_the_endpoint_by_wildcard(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(endpoint="k8s.example.org:6443"))
    names = ("cp-1", "*.example.org", "kubernetes.default.svc", "10.96.0.1", "192.0.2.111")
    reissue(tree, "apiserver", names=names)
    assert outcomes(tree.node())["san-missing-endpoint"].status is Status.PASSED


def test_a_renamed_host_keeps_its_certificates(tree: Tree) -> None:
    tree.write("/etc/hostname", "m01\n")
    tree.write("/proc/sys/kernel/hostname", "m01\n")
    assert outcomes(tree.node())["cert-of-other-node"].status is Status.PASSED


def test_a_domain_behind_the_name_is_the_same_node(tree: Tree) -> None:
    tree.write("/etc/hostname", "cp-1.example.org\n")
    tree.write("/proc/sys/kernel/hostname", "cp-1.example.org\n")
    reissue(tree, "etcd/peer", names=("cp-1", "192.0.2.9"))
    assert outcomes(tree.node())["cert-of-other-node"].status is Status.PASSED


def test_a_jump_that_spoils_certificates_is_the_cause(tree: Tree) -> None:
    reissue(tree, "apiserver", now=NOW + 30 * DAY)
    tree.write("/drtool/journal/kubelet.log", JOURNAL.format(hour=21, text="a") + JOURNAL.format(hour=20, text="b"))
    found = outcomes(tree.node())["clock-jump"].findings
    assert [finding.severity for finding in found] == [Severity.CRITICAL]


def test_a_gap_forward_is_a_machine_that_slept(tree: Tree) -> None:
    tree.write("/drtool/journal/kubelet.log", JOURNAL.format(hour=10, text="a") + JOURNAL.format(hour=20, text="b"))
    assert outcomes(tree.node())["clock-jump"].status is Status.PASSED


def test_a_few_minutes_of_skew_are_allowed(tree: Tree) -> None:
    begun = client(tree, "kubelet.conf", NOW + timedelta(minutes=9))  # issuing backdates by five
    rotate_kubelet(tree, begun)
    assert outcomes(tree.node())["cert-not-yet-valid"].status is Status.PASSED


def served(tree: Tree, fingerprint: str) -> None:
    certificate = {"fingerprint": fingerprint, "subject": "CN=kube-apiserver", "issuer": "kubernetes", "names": []}
    answer = {"component": "kube-apiserver", "kind": "http", "url": "https://192.0.2.111:6443/livez", "ok": True}
    tree.write("/drtool/probes.json", json.dumps([{**answer, "status": 200, "certificate": certificate}]))


def test_the_served_certificate_against_the_file(tree: Tree) -> None:
    assert outcomes(tree.node())["cert-served-differs"].status is Status.SKIPPED
    served(tree, tree.node().certificate(f"{PKI}/apiserver.crt").fingerprint)
    assert outcomes(tree.node())["cert-served-differs"].status is Status.PASSED
    served(tree, "00" * 32)
    assert outcomes(tree.node())["cert-served-differs"].status is Status.FAILED


def test_a_process_older_than_its_renewed_file(tree: Tree) -> None:
    pod = "/var/log/pods/kube-system_kube-scheduler-cp-1_0123/kube-scheduler/0.log"
    lines = ("2026-12-01T00:00:00Z stderr F start", "2026-12-14T00:00:00Z stderr F x509: certificate has expired")
    tree.write(pod, "".join(f"{line}\n" for line in lines))
    written = datetime(2026, 12, 10, tzinfo=UTC).timestamp()
    os.utime(tree.place("/etc/kubernetes/scheduler.conf"), (written, written))
    assert outcomes(tree.node())["renewed-not-reloaded"].status is Status.FAILED


def test_a_new_ca_with_the_old_key_is_trusted(tree: Tree) -> None:
    new_authority(tree, "etcd/ca", common_name="etcd-ca")
    _short_lived(tree)  # the old key again, in another certificate
    found = outcomes(tree.node())
    assert found["issuer-mismatch"].status is Status.PASSED
    assert found["key-pair-mismatch"].status is Status.FAILED  # ca.key is the new CA's


def test_how_soon_is_soon_can_be_told(tree: Tree) -> None:
    reissue(tree, "apiserver", life=90 * DAY)
    assert outcomes(tree.node())["cert-expires-soon"].status is Status.PASSED
    patient = replace(tree.node(), expiry_days=120)
    assert outcomes(patient)["cert-expires-soon"].status is Status.FAILED


@pytest.mark.parametrize(("half", "other"), [("key", "crt"), ("crt", "key")])
def test_one_half_of_a_pair_in_the_place_of_the_other(tree: Tree, half: str, other: str) -> None:
    tree.write(f"{PKI}/apiserver.{half}", tree.read(f"{PKI}/apiserver.{other}"), 0o600)
    assert judged(tree.node()).verdict.root_causes == ("key-pair-mismatch",)


def test_a_rotated_file_that_lost_its_key(tree: Tree) -> None:
    issued = client(tree, "kubelet.conf", BORN)
    tree.write(str(tree.place(CURRENT).readlink()), issued.certificate_pem, 0o600)
    assert judged(tree.node()).verdict.root_causes == ("key-pair-mismatch",)


def test_a_kubeconfig_without_the_key_of_its_certificate(tree: Tree) -> None:
    tree.sub("/etc/kubernetes/scheduler.conf", r" *client-key-data: .*\n", "")
    assert judged(tree.node()).verdict.root_causes == ("pem-empty-or-garbage",)


def test_a_kubeconfig_that_names_files(tree: Tree) -> None:
    config = "/etc/kubernetes/scheduler.conf"
    for name, issued in (
        ("good", client(tree, "scheduler.conf", BORN)),
        ("old", client(tree, "admin.conf", BORN, DAY)),
    ):
        tree.write(f"{PKI}/{name}.crt", issued.certificate_pem)
        tree.write(f"{PKI}/{name}.key", issued.key_pem, 0o600)
    for what, file in (
        ("certificate-authority", "ca.crt"),
        ("client-certificate", "good.crt"),
        ("client-key", "good.key"),
    ):
        tree.sub(config, rf"{what}-data: .*", f"{what}: pki/{file}")
    assert judged(tree.node()).verdict.root_causes == ()
    tree.replace(config, "pki/ca.crt", "pki/etcd/ca.crt")
    assert judged(tree.node()).verdict.root_causes == ("kubeconfig-ca-stale",)
    tree.replace(config, "pki/etcd/ca.crt", "pki/ca.crt")
    tree.replace(config, "pki/good", "pki/old")
    assert judged(tree.node()).verdict.root_causes == ("cert-expired",)


def test_a_bundle_in_the_flags_of_single_signers(tree: Tree) -> None:
    tree.write(f"{PKI}/signers.crt", tree.read(f"{PKI}/ca.crt") + tree.read(f"{PKI}/front-proxy-ca.crt"))
    for half in ("cert", "key"):
        tree.set_flag("kube-controller-manager", f"cluster-signing-{half}-file", None)
    tree.set_flag("kube-controller-manager", "cluster-signing-kubelet-client-cert-file", f"{PKI}/signers.crt")
    tree.set_flag("kube-controller-manager", "cluster-signing-kubelet-client-key-file", f"{PKI}/ca.key")
    assert judged(tree.node()).verdict.root_causes == ("ca-bundle-as-signing-cert",)


def test_an_alien_certificate_inside_kubelet_conf_is_the_links_matter(tree: Tree) -> None:
    alien = client(tree, "kubelet.conf", BORN, authority=issue_authority("kubernetes", BORN, new_key("ECDSA-P256")))
    edit_kubeconfig(tree, "/etc/kubernetes/kubelet.conf", issued=alien)
    assert judged(tree.node()).verdict.root_causes == ("kubelet-client-link",)
