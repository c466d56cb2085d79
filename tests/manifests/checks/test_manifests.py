"""Static Pod manifests: unreadable, missing, duplicate; etcd's endpoint; files that flags name."""

from __future__ import annotations

from pathlib import Path

import pytest

from drtool.commands.check import judged
from drtool.core.report import Severity, Status
from tests.builders.real import real
from tests.builders.tree import Tree, laid, outcomes

MANIFESTS = "/etc/kubernetes/manifests"
PKI = "/etc/kubernetes/pki"
AUDIT_POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
APISERVER = f"{MANIFESTS}/kube-apiserver.yaml"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def causes(tree: Tree) -> tuple[str, ...]:
    return judged(tree.node()).verdict.root_causes


def test_a_healthy_node_passes(tree: Tree) -> None:
    found = outcomes(tree.node())
    for id_ in (
        "manifest-unparsable",
        "manifest-missing",
        "duplicate-static-pod",
        "etcd-servers-vs-etcd",
        "flag-file-not-mounted",
    ):
        assert found[id_].status is Status.PASSED, found[id_]


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"(?s).*", ""),
        (r"\n  namespace: kube-system", "\n\tnamespace: kube-system"),
        (r"(?s)    image: .*", ""),
        (r"    - --allow-privileged=true", "    - --allow-privileged: true"),
        (r"    - --allow-privileged=true", "   - --allow-privileged=true"),
        (r"(?s)(- --tls-private).*", r"\1"),
        (r"kind: Pod", "kind: pod"),
        (r"apiVersion: v1", "apiVersion: v2"),
        (r"(?s)  volumes:\n.*", ""),
    ],
)
def test_what_the_kubelet_cannot_read(tree: Tree, pattern: str, replacement: str) -> None:
    tree.sub(APISERVER, pattern, replacement)
    assert causes(tree) == ("manifest-unparsable",)


def test_a_key_given_twice_is_a_warning(tree: Tree) -> None:
    tree.replace(APISERVER, "  hostNetwork: true\n", "  hostNetwork: false\n  hostNetwork: true\n")
    report = judged(tree.node())
    assert report.verdict.root_causes == ()
    assert outcomes(tree.node())["manifest-unparsable"].findings[0].severity is Severity.WARNING


def test_an_alias_is_not_judged_and_no_fault(tree: Tree) -> None:
    tree.replace(APISERVER, "metadata:\n", "metadata:\n  annotations: {x: &x y, z: *x}\n")
    assert outcomes(tree.node())["manifest-unparsable"].findings[0].severity is Severity.WARNING
    assert causes(tree) == ()


def test_a_manifest_parked_and_forgotten(tree: Tree) -> None:
    text = tree.read(APISERVER)
    tree.write("/etc/kubernetes/manifests.off/kube-apiserver.yaml", text)
    tree.remove(APISERVER)
    report = judged(tree.node())
    assert report.verdict.root_causes == ("manifest-missing",)
    assert "/etc/kubernetes/manifests.off/kube-apiserver.yaml" in report.verdict.findings[0].finding.title


def test_a_partial_copy_without_manifests_is_unknown(tree: Tree) -> None:
    tree.remove(MANIFESTS)
    assert outcomes(tree.node())["manifest-missing"].status is Status.UNKNOWN


@pytest.mark.parametrize("name", ["kube-apiserver.yaml.bak", "kube-apiserver.yaml~", "old"])
def test_a_backup_beside_the_manifest(tree: Tree, name: str) -> None:
    tree.write(
        f"{MANIFESTS}/{name}", tree.read(APISERVER).replace("NodeRestriction", "NodeRestriction,AlwaysPullImages")
    )
    assert causes(tree) == ("duplicate-static-pod",)


@pytest.mark.parametrize("name", [".kube-apiserver.yaml.swp", "old/kube-apiserver.yaml"])
def test_what_the_kubelet_does_not_read(tree: Tree, name: str) -> None:
    tree.write(f"{MANIFESTS}/{name}", tree.read(APISERVER))
    assert causes(tree) == ()


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:2389", "http://127.0.0.1:2379", "https://192.0.2.50:2379", "https://[::1]:2379"]
)
def test_an_api_server_that_dials_where_etcd_does_not_listen(tree: Tree, url: str) -> None:
    tree.set_flag("kube-apiserver", "etcd-servers", url)
    assert causes(tree) == ("etcd-servers-vs-etcd",)


@pytest.mark.parametrize("url", ["https://192.0.2.111:2379", "https://localhost:2379"])
def test_other_right_ways_to_dial_etcd(tree: Tree, url: str) -> None:
    tree.set_flag("kube-apiserver", "etcd-servers", url)
    assert causes(tree) == ()


def test_an_api_server_without_a_client_certificate(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "etcd-certfile", None)
    assert causes(tree) == ("etcd-servers-vs-etcd",)


def test_a_policy_outside_all_mounts(tree: Tree) -> None:
    tree.write("/etc/audit/policy.yaml", AUDIT_POLICY)
    tree.set_flag("kube-apiserver", "audit-policy-file", "/etc/audit/policy.yaml")
    assert causes(tree) == ("flag-file-not-mounted",)


def test_a_mounted_file_that_does_not_exist(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "authentication-config", "/etc/kubernetes/pki/authentication.yaml")
    assert causes(tree) == ("flag-file-not-mounted",)


def test_a_log_under_a_read_only_mount(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "audit-log-path", "/etc/kubernetes/pki/audit.log")
    assert causes(tree) == ("flag-file-not-mounted",)


@pytest.mark.parametrize("path", ["-", "/var/log/audit.log"])
def test_logs_that_need_no_mount(tree: Tree, path: str) -> None:
    tree.set_flag("kube-apiserver", "audit-log-path", path)
    assert causes(tree) == ()


def test_external_ca_mode_lacks_the_key_and_is_healthy(tree: Tree) -> None:
    tree.remove("/etc/kubernetes/pki/ca.key")
    assert causes(tree) == ()


def test_a_certificate_for_other_names_has_its_names_after_a_colon(tree: Tree) -> None:
    for half in ("crt", "key"):
        tree.write(f"{PKI}/sni.{half}", tree.read(f"{PKI}/apiserver.{half}"), 0o600)
    tree.set_flag("kube-apiserver", "tls-sni-cert-key", f"{PKI}/sni.crt,{PKI}/sni.key:k8s.example.org,*.example.org")
    assert causes(tree) == ()
    tree.remove(f"{PKI}/sni.key")
    assert causes(tree) == ("flag-file-not-mounted",)


def test_an_external_etcd_dialled_in_plain_http(tmp_path: Path) -> None:
    tree = real("external-etcd-1.36", tmp_path)
    assert causes(tree) == ()
    tree.replace(APISERVER, "https://192.0.2.132:2379", "http://192.0.2.132:2379")
    assert causes(tree) == ("etcd-servers-vs-etcd",)


def test_a_client_certificate_of_etcd_that_is_not_there(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "etcd-certfile", f"{PKI}/other-etcd-client.crt")
    assert causes(tree) == ("flag-file-not-mounted",)


def test_etcd_without_listen_urls_listens_on_localhost_in_plain_http(tree: Tree) -> None:
    tree.set_flag("etcd", "listen-client-urls", None)
    assert causes(tree) == ("etcd-servers-vs-etcd",)
