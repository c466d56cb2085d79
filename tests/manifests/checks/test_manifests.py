"""Static Pod manifests: unreadable, missing, duplicate; etcd's endpoint; files that flags name."""

from __future__ import annotations

import json
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


REFUSED = [
    ("    image: ", "    env: [{name: A, value: 4}]\n    image: ", "env[0].value must be a string"),
    ("    image: ", "    env: [{value: a}]\n    image: ", "has no name"),
    ("metadata:\n", "metadata:\n  annotations: {scrape: true}\n", "metadata.annotations.scrape must be a string"),
    ("  namespace: kube-system\n", "  namespace: Kube\n", "no DNS label"),
    ("    component: kube-apiserver\n", "    version: 1.37\n", "metadata.labels.version must be a string"),
    ("    component: kube-apiserver\n", "    version: a/b\n", "no value of a label"),
    ("hostNetwork: true", 'hostNetwork: "true"', "spec.hostNetwork must be true or false"),
    ("containerPort: 6443", 'containerPort: "6443"', "containerPort must be a whole number"),
    ("containerPort: 6443", "containerPort: 64430000", "no port"),
    ("failureThreshold: 8", 'failureThreshold: "8"', "failureThreshold must be a whole number"),
    ("port: probe-port", 'port: "6443"', "no port of a probe"),
    ("cpu: 100m", "memory: 1GiB", "memory must be a quantity"),
    ("cpu: 100m", "mem: 1Gi", "mem is no resource"),
    ("cpu: 100m", "cpu: 1\n      limits: {cpu: 200m}", "are the limit"),
    ("type: DirectoryOrCreate", "type: DirectoryorCreate", "no type of a hostPath"),
    ("  volumes:\n", "  volumes:\n  - {name: ca-certs, hostPath: {path: /x}}\n", "two volumes are called ca-certs"),
    ("  volumes:\n", "  volumes:\n  - {name: a_b, hostPath: {path: /x}}\n", "no name of a volume"),
    ("  volumes:\n", "  volumes:\n  - {name: a, hostPath: {path: /x/../y}}\n", "has no path, or one with .."),
    ("  volumes:\n", "  volumes:\n  - {name: a, hostPath: {path: /x}, emptyDir: {}}\n", "two sources"),
    (
        "volumeMounts:\n",
        "volumeMounts:\n    - {name: k8s-certs, mountPath: /etc/ssl/certs}\n",
        "two volumes are mounted",
    ),
    ("volumeMounts:\n", "volumeMounts:\n    - {name: k8s-certs}\n", "has no mountPath"),
    ("imagePullPolicy: IfNotPresent", "imagePullPolicy: ifnotpresent", "imagePullPolicy is ifnotpresent"),
    ("type: RuntimeDefault", "type: Default", "a seccompProfile is of one type"),
    ("priorityClassName: system-node-critical", "restartPolicy: always", "restartPolicy is always"),
]


@pytest.mark.parametrize(("text", "other", "words"), REFUSED, ids=[one[2] for one in REFUSED])
def test_what_the_kubelet_does_not_take(tree: Tree, text: str, other: str, words: str) -> None:
    """Each tried with the decoder and the validation of the kubelet 1.37 (pkg/kubelet/config/common.go)."""
    tree.replace(APISERVER, text, other)
    assert causes(tree) == ("manifest-unparsable",)
    assert words in outcomes(tree.node())["manifest-unparsable"].findings[0].title


def test_what_looks_odd_and_is_taken(tree: Tree) -> None:
    """Each tried as above."""
    tree.replace(
        APISERVER,
        "metadata:\n",
        "metadata:\n  annotations: {since: 2024-01-08, at: 12:30, none: , quoted: '4'}\n  unknown: {field: 1}\n",
    )
    tree.replace(
        APISERVER, "cpu: 100m", "cpu: 1150m\n        memory: 1e9\n      limits: {cpu: 1.15, example.org/gpu: 1}"
    )
    tree.replace(APISERVER, "  volumes:\n", "  volumes:\n  - {name: audit, hostPath: {path: /a}, readOnly: true}\n")
    tree.replace(
        APISERVER, "hostNetwork: true", "hostNetwork: y\n  terminationGracePeriodSeconds: 3e1\n  tolerations: [null]"
    )
    tree.replace(APISERVER, "failureThreshold: 8", "failureThreshold: 0o10\n      foo: -1")
    tree.replace(APISERVER, "    image: ", "    envFrom: [null]\n    image: ")
    assert causes(tree) == ()


def test_one_port_on_two_addresses_of_the_host(tree: Tree) -> None:
    """As node-local DNS has it."""
    ports = ", ".join(f"{{containerPort: 53, hostPort: 53, hostIP: {ip}}}" for ip in ("169.254.20.10", "10.96.0.10"))
    spec = f"{{containers: [{{name: c, image: i, ports: [{ports}]}}]}}"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: dns-}}\nspec: {spec}\n"
    tree.write(f"{MANIFESTS}/dns.yaml", pod)
    assert causes(tree) == ()
    tree.write(f"{MANIFESTS}/dns.yaml", pod.replace("10.96.0.10", "169.254.20.10"))
    assert causes(tree) == ("manifest-unparsable",)


def test_a_host_path_with_a_slash_at_its_end(tree: Tree) -> None:
    tree.replace(
        APISERVER,
        "path: /etc/kubernetes/pki\n      type: DirectoryOrCreate",
        "path: /etc/kubernetes//pki/\n      type: Directory",
    )
    assert causes(tree) == ()


@pytest.mark.parametrize(
    ("text", "other", "words"),
    [
        ("hostNetwork: true", "hostNetwork: true\n  imagePullSecrets: [{name: regcred}]", "a Secret"),
        ("hostNetwork: true", "hostNetwork: true\n  serviceAccountName: kube-vip", "a ServiceAccount"),
        ("  volumes:\n", "  volumes:\n  - {name: a, configMap: {name: a}}\n", "a ConfigMap"),
        ("    image: ", "    envFrom: [{secretRef: {name: a}}]\n    image: ", "a Secret"),
    ],
)
def test_a_static_pod_refers_to_nothing_in_the_api(tree: Tree, text: str, other: str, words: str) -> None:
    tree.replace(APISERVER, text, other)
    for kubelet, severity in (("v1.34.4", None), (None, Severity.WARNING)):
        tree.write("/drtool/versions.json", json.dumps({"kubelet": kubelet}))
        (found,) = outcomes(tree.node())["manifest-unparsable"].findings
        assert found.title.endswith(f"it refers to {words}, and no static Pod may")
        assert found.severity is severity or severity is None
    tree.write("/drtool/versions.json", '{"kubelet": "v1.33.4"}')
    assert outcomes(tree.node())["manifest-unparsable"].findings == ()


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


@pytest.mark.parametrize(
    ("kind", "lies", "words"),
    [
        ("Directory", None, "/etc/kubernetes/audit does not exist, and the mount asks for a Directory"),
        ("Directory", "file", "/etc/kubernetes/audit is a file, and the mount asks for a Directory"),
        ("DirectoryOrCreate", "file", "/etc/kubernetes/audit is a file, and the mount asks for a DirectoryOrCreate"),
        ("FileOrCreate", "directory", "/etc/kubernetes/audit is a directory, and the mount asks for a FileOrCreate"),
        ("DirectoryOrCreate", None, ""),
        ("FileOrCreate", None, ""),
        ("Directory", "directory", ""),
        ("", "file", ""),
    ],
)
def test_what_lies_at_a_host_path_is_of_its_type(tree: Tree, kind: str, lies: str | None, words: str) -> None:
    """pkg/volume/hostpath, checkTypeInternal: FileOrCreate is made where there is nothing, else it must be a file."""
    if lies == "file":
        tree.write("/etc/kubernetes/audit", "")
    elif lies == "directory":
        tree.write("/etc/kubernetes/audit/kept", "")
    tree.replace(APISERVER, "volumeMounts:\n", "volumeMounts:\n    - {name: audit, mountPath: /etc/kubernetes/audit}\n")
    volume = f"{{name: audit, hostPath: {{path: /etc/kubernetes/audit, type: {json.dumps(kind)}}}}}"
    tree.replace(APISERVER, "  volumes:\n", f"  volumes:\n  - {volume}\n")
    assert causes(tree) == (("flag-file-not-mounted",) if words else ())
    found = outcomes(tree.node())["flag-file-not-mounted"].findings
    assert [one.title.partition(": ")[2] for one in found] == ([words] if words else [])


def test_a_volume_with_no_source_that_is_known_is_an_empty_directory(tree: Tree) -> None:
    text = tree.read(APISERVER)
    tree.write(
        APISERVER,
        text.replace("hostPath:\n      path: /etc/kubernetes/pki", "hostpath:\n      path: /etc/kubernetes/pki"),
    )
    assert causes(tree) == ("flag-file-not-mounted",)
    (found,) = outcomes(tree.node())["flag-file-not-mounted"].findings
    assert found.title.startswith("/etc/kubernetes/pki is an empty directory for kube-apiserver")
    assert found.evidence[0].text == "hostpath:"


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
