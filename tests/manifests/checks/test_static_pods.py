"""Static Pod manifests against what each release takes: a healthy node passes, each fault is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drtool.commands.check import judged
from drtool.core.report import Finding, Severity, Status
from manifests.checks.apiserver.flag_quoting import fault
from manifests.checks.apiserver.no_proxy_incomplete import covers
from manifests.kubeadm import Design
from manifests.quantity import quantity
from tests.builders.tree import Tree, laid, outcomes

MANIFESTS = "/etc/kubernetes/manifests"
ETCD, APISERVER = f"{MANIFESTS}/etcd.yaml", f"{MANIFESTS}/kube-apiserver.yaml"
SCHEDULER, MANAGER = f"{MANIFESTS}/kube-scheduler.yaml", f"{MANIFESTS}/kube-controller-manager.yaml"
KUBELET = "/var/lib/kubelet/config.yaml"
AUTHZ, AUTHN = "/etc/kubernetes/pki/authz.yaml", "/etc/kubernetes/pki/authn.yaml"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


def causes(tree: Tree) -> tuple[str, ...]:
    return judged(tree.node()).verdict.root_causes


def findings(tree: Tree, id_: str) -> tuple[Finding, ...]:
    return outcomes(tree.node())[id_].findings


def titles(tree: Tree, id_: str) -> list[str]:
    return [finding.title for finding in findings(tree, id_)]


def test_a_healthy_node_passes(tree: Tree) -> None:
    found = outcomes(tree.node())
    for id_ in (
        "flag-unknown-or-removed",
        "flag-typo",
        "flag-quoting",
        "feature-gate-unknown",
        "admission-plugin-unknown",
        "tls-option-invalid",
        "probe-unauthorized",
        "config-file-invalid",
        "image-inconsistent",
        "hostnetwork-false",
        "priority-missing",
        "editor-leftovers",
        "upgrade-leftovers",
        "non-pod-file-in-manifests",
        "staticpodpath-mismatch",
    ):
        assert found[id_].status is Status.PASSED, found[id_]
    assert found["no-proxy-incomplete"].status is Status.SKIPPED
    assert found["run-as-user-vs-perms"].status is Status.SKIPPED
    assert found["image-not-pullable"].status is Status.UNKNOWN
    assert found["requests-exceed-node"].status is Status.UNKNOWN


# ---- flag-unknown-or-removed, flag-typo, flag-quoting


def test_a_removed_flag_names_its_release_and_what_replaces_it(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(kubernetes="v1.24.2", etcd="3.5.3-0"))
    assert causes(tree) == ()
    tree.set_flag("kube-scheduler", "address", "127.0.0.1")
    assert titles(tree, "flag-unknown-or-removed") == [
        "--address of kube-scheduler 1.24.2 was removed in 1.24; use --bind-address"
    ]
    assert causes(tree) == ("flag-unknown-or-removed",)


def test_a_deprecated_flag_that_help_hides_is_no_fault(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "kubelet-port", "10250")
    assert not findings(tree, "flag-unknown-or-removed")


def test_a_flag_of_another_program_is_told_so(tree: Tree) -> None:
    tree.set_flag("kube-scheduler", "cluster-cidr", "10.244.0.0/16")
    assert titles(tree, "flag-unknown-or-removed") == [
        "--cluster-cidr of kube-scheduler 1.37.2 is unknown; it is a flag of kube-controller-manager"
    ]


def test_an_image_without_a_version_is_only_warned_about(tree: Tree) -> None:
    tree.sub(SCHEDULER, r"kube-scheduler:v[\d.]+", "kube-scheduler:latest")
    tree.set_flag("kube-scheduler", "frobnicate", "yes")
    (finding,) = findings(tree, "flag-unknown-or-removed")
    assert finding.severity is Severity.WARNING


def test_a_release_beyond_the_tables_is_unknown_not_passed(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(kubernetes="v1.41.0"))
    found = outcomes(tree.node())["flag-unknown-or-removed"]
    assert found.status is Status.UNKNOWN
    assert "no release data of kube-apiserver 1.41.0" in found.reason


@pytest.mark.parametrize("flag", ["service-account-issuer", "service-account-key-file", "etcd-servers"])
def test_the_api_server_needs_its_required_flags(tree: Tree, flag: str) -> None:
    tree.set_flag("kube-apiserver", flag, None)
    assert titles(tree, "flag-unknown-or-removed") == [f"The API server has no --{flag}, and does not start without it"]


@pytest.mark.parametrize(
    ("program", "flag", "meant"),
    [
        ("kube-apiserver", "etcd-sevrers", "etcd-servers"),
        ("etcd", "quota-backend-byte", "quota-backend-bytes"),
        ("kube-controller-manager", "cluster-cdir", "cluster-cidr"),
    ],
)
def test_a_typing_error_names_the_flag_that_is_meant(tree: Tree, program: str, flag: str, meant: str) -> None:
    tree.set_flag(program, flag, "1")
    (finding,) = findings(tree, "flag-typo")
    assert meant in finding.title
    assert not findings(tree, "flag-unknown-or-removed")


@pytest.mark.parametrize(
    ("program", "flag"),
    [
        ("kube-apiserver", "etcd-servers"),
        ("kube-apiserver", "etcd-cafile"),
        ("kube-apiserver", "service-account-issuer"),
        ("etcd", "listen-metrics-urls"),
        ("kube-controller-manager", "allocate-node-cidrs"),
    ],
)
def test_a_typing_error_is_the_one_cause(tree: Tree, program: str, flag: str) -> None:
    tree.replace(f"/etc/kubernetes/manifests/{program}.yaml", f"--{flag}=", f"--{flag[:-1]}=")
    assert causes(tree) == ("flag-typo",)


@pytest.mark.parametrize(
    ("argument", "wrong"),
    [
        ('"--v=2"', True),
        ("'--v=2'", True),
        ("--v='2'", True),
        ("--v=2 --profiling=false", True),
        ("--v 2", True),
        (" --v=2", True),
        ("--v=2\n", True),
        ('--audit-log-path=/x"', True),
        ("\u201c--v=2\u201d", True),
        ("--v=2", False),
        ("--profiling", False),
        ("--tls-sni-cert-key=/a.crt,/a.key:*.example.org", False),
        ('--tracing={"a": "b c"}', False),
        ("--oidc-required-claim=name=Jane Doe", False),
        ("kube-apiserver", False),
        ("--event-ttl=1h0m0s", False),
    ],
)
def test_quotes_and_spaces_in_an_argument(argument: str, wrong: bool) -> None:
    assert bool(fault(argument)) is wrong


def test_embedded_quotes_are_the_one_cause(tree: Tree) -> None:
    tree.sub(APISERVER, r"- --advertise-address=[\d.]+\n", "- '\"--advertise-address=192.0.2.111\"'\n")
    assert causes(tree) == ("flag-quoting",)


@pytest.mark.parametrize(
    ("program", "flag"),
    [
        ("kube-apiserver", "secure-port"),
        ("kube-apiserver", "service-cluster-ip-range"),
        ("kube-apiserver", "etcd-servers"),
        ("kube-apiserver", "enable-admission-plugins"),
        ("etcd", "data-dir"),
    ],
)
def test_a_value_in_quotes_is_the_one_cause(tree: Tree, program: str, flag: str) -> None:
    tree.sub(f"/etc/kubernetes/manifests/{program}.yaml", rf"- --{flag}=(\S+)\n", rf'- --{flag}="\1"\n')
    assert causes(tree) == ("flag-quoting",)


def test_quotes_of_yaml_are_fine(tree: Tree) -> None:
    tree.sub(APISERVER, r"- --secure-port=6443\n", '- "--secure-port=6443"\n')
    assert causes(tree) == ()


# ---- feature-gate-unknown, admission-plugin-unknown


@pytest.mark.parametrize(
    ("program", "gates", "severity"),
    [
        ("kube-apiserver", "ControlPlaneKubeletLocalMode=true", Severity.CRITICAL),
        ("kube-scheduler", "EphemeralContainers=true", Severity.CRITICAL),
        ("kube-apiserver", "wardle:AllAlpha=true", Severity.CRITICAL),
        ("kube-apiserver", "AllBeta", Severity.CRITICAL),
        ("kube-apiserver", "DeclarativeValidationTakeover=false", Severity.WARNING),
        ("kube-apiserver", "DeclarativeValidationTakeover=true", Severity.CRITICAL),
        ("etcd", "NoSuchGate=true", Severity.CRITICAL),
        ("etcd", "kube:AllAlpha=true", Severity.CRITICAL),
        ("kube-apiserver", "kube:AllAlpha=true", None),
        ("etcd", "InitialCorruptCheck=true", None),
    ],
)
def test_gates_of_static_pods(tree: Tree, program: str, gates: str, severity: Severity | None) -> None:
    tree.set_flag(program, "feature-gates", gates)
    found = findings(tree, "feature-gate-unknown")
    assert [finding.severity or Severity.CRITICAL for finding in found] == ([severity] if severity is not None else [])


def test_gates_of_the_kubelet_stand_in_its_configuration(tree: Tree) -> None:
    tree.write(KUBELET, tree.read(KUBELET) + "featureGates:\n  NoSuchGate: true\n")
    (finding,) = findings(tree, "feature-gate-unknown")
    assert finding.title == "Feature gate NoSuchGate of kubelet 1.37.2 is unknown"
    assert finding.evidence[0].path == KUBELET
    assert causes(tree) == ("feature-gate-unknown",)


def test_a_plugin_that_is_gone_is_the_cause(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "enable-admission-plugins", "NodeRestriction,PodSecurityPolicy")
    assert titles(tree, "admission-plugin-unknown") == [
        "Admission plugin PodSecurityPolicy of kube-apiserver 1.37.2 was removed in 1.25"
    ]
    assert causes(tree) == ("admission-plugin-unknown",)


def test_a_plugin_both_enabled_and_disabled_is_refused(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "disable-admission-plugins", "NodeRestriction")
    assert titles(tree, "admission-plugin-unknown") == [
        "Admission plugin NodeRestriction is enabled and disabled at once"
    ]


# ---- tls-option-invalid


@pytest.mark.parametrize(
    ("program", "flags", "severities"),
    [
        ("kube-apiserver", {"tls-cipher-suites": "TLS_FOO"}, [None]),
        ("kube-apiserver", {"tls-min-version": "TLS1.2"}, [None]),
        ("kube-apiserver", {"tls-cipher-suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, [None]),
        ("etcd", {"cipher-suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}, [None]),
        ("etcd", {"tls-min-version": "VersionTLS12"}, [None]),
        ("etcd", {"tls-min-version": "TLS1.3", "cipher-suites": "TLS_AES_128_GCM_SHA256"}, [None]),
        (
            "kube-apiserver",
            {"tls-cipher-suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_128_CBC_SHA"},
            [Severity.WARNING],
        ),
        (
            "kube-apiserver",
            {"tls-cipher-suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "tls-min-version": "VersionTLS13"},
            [],
        ),
        (
            "kube-apiserver",
            {"tls-cipher-suites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "disable-http2-serving": "true"},
            [],
        ),
        ("etcd", {"tls-min-version": "TLS1.3"}, []),
        ("kube-scheduler", {"tls-min-version": "VersionTLS12"}, []),
    ],
)
def test_tls_options(tree: Tree, program: str, flags: dict[str, str], severities: list[Severity | None]) -> None:
    for name, value in flags.items():
        tree.set_flag(program, name, value)
    assert [finding.severity for finding in findings(tree, "tls-option-invalid")] == severities


def test_an_old_api_server_cannot_speak_to_an_etcd_of_tls_13_alone(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(kubernetes="v1.27.4", etcd="3.5.21-0"))
    tree.set_flag("etcd", "tls-min-version", "TLS1.3")
    assert titles(tree, "tls-option-invalid") == [
        "etcd takes TLS 1.3 alone, and kube-apiserver 1.27.4 offers it at most TLS 1.2"
    ]


def test_the_kubelets_cipher_suites_are_judged_too(tree: Tree) -> None:
    tree.write(KUBELET, tree.read(KUBELET) + "tlsCipherSuites: [TLS_FOO]\n")
    assert titles(tree, "tls-option-invalid") == ["kubelet knows no cipher suite TLS_FOO"]


# ---- probe-unauthorized


def test_anonymous_requests_refused_kill_a_healthy_api_server(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "anonymous-auth", "false")
    assert causes(tree) == ("probe-unauthorized",)


def test_probes_by_tcp_need_no_anonymous_request(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "anonymous-auth", "false")
    tree.sub(APISERVER, r"httpGet:\n\s+host: .*\n\s+path: .*\n(\s+port: .*)\n\s+scheme: HTTPS", r"tcpSocket:\n\1")
    assert not findings(tree, "probe-unauthorized")


@pytest.mark.parametrize(
    ("paths", "fires"), [(["/livez", "/readyz", "/healthz"], False), (["/healthz"], True), ([], False)]
)
def test_conditions_of_an_authentication_configuration(tree: Tree, paths: list[str], fires: bool) -> None:
    where = "/etc/kubernetes/pki/authn.yaml"
    conditions = "".join(f"  - path: {path}\n" for path in paths)
    tree.write(
        where,
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous:\n  enabled: true\n"
        + (f"  conditions:\n{conditions}" if paths else ""),
    )
    tree.set_flag("kube-apiserver", "authentication-config", where)
    assert bool(findings(tree, "probe-unauthorized")) is fires


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ({"authorization-config": AUTHZ}, "--authorization-config beside --authorization-mode"),
        ({"authorization-config": AUTHZ, "authorization-mode": None}, ""),
        (
            {
                "authorization-config": AUTHZ,
                "authorization-mode": None,
                "authorization-webhook-cache-authorized-ttl": "5m",
            },
            "beside --authorization-webhook-cache-authorized-ttl",
        ),
        ({"authorization-mode": "Node,Webhook"}, "needs --authorization-webhook-config-file"),
        ({"authorization-mode": "Node,RBAC,ABAC"}, "needs --authorization-policy-file"),
        ({"authorization-mode": "Node,RBAC,RBAC"}, "RBAC is given twice"),
        ({"authorization-mode": "node,RBAC"}, "no authorization mode node"),
        ({"authorization-webhook-config-file": AUTHZ}, "is of authorization mode Webhook"),
        ({"authorization-mode": "Node,RBAC,Webhook", "authorization-webhook-config-file": AUTHZ}, ""),
        ({"service-account-signing-endpoint": "/run/signer.sock"}, "beside --service-account-key-file"),
        ({"authentication-config": AUTHN, "oidc-username-claim": "sub"}, "beside --oidc-username-claim"),
    ],
)
def test_flags_that_do_not_go_together(tree: Tree, flags: dict[str, str | None], word: str) -> None:
    tree.write(
        AUTHZ,
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
        "authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]\n",
    )
    tree.write(AUTHN, "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n")
    for name, value in flags.items():
        tree.set_flag("kube-apiserver", name, value)
    found = titles(tree, "flag-unknown-or-removed")
    assert len(found) == bool(word)
    assert all(word in title for title in found)
    assert causes(tree) == (("flag-unknown-or-removed",) if word else ())


# ---- config-file-invalid

ENCRYPTION = """apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - {provider}
"""
GOOD_KEY = "{aescbc: {keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}}"


@pytest.mark.parametrize(
    ("flag", "text", "word"),
    [
        ("audit-policy-file", "apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]\n", "v1beta1"),
        ("audit-policy-file", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n", "no rules"),
        ("audit-policy-file", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Meta}]\n", "Meta"),
        ("audit-policy-file", "apiVersion: v1\nkind: Pod\n", "wants a Policy"),
        ("audit-policy-file", "apiVersion: audit.k8s.io/v1\n\tkind: Policy\n", "cannot be read"),
        ("audit-policy-file", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n", ""),
        ("encryption-provider-config", ENCRYPTION.replace("{provider}", GOOD_KEY), ""),
        ("encryption-provider-config", ENCRYPTION.replace("{provider}", "{identity: {}}"), ""),
        ("encryption-provider-config", ENCRYPTION.replace("{provider}", "{aesfoo: {}}"), "aesfoo"),
        (
            "encryption-provider-config",
            ENCRYPTION.replace("{provider}", "{aescbc: {keys: [{name: a, secret: Zm9v}]}}"),
            "has 3 bytes",
        ),
        (
            "encryption-provider-config",
            ENCRYPTION.replace("{provider}", "{secretbox: {keys: [{name: a, secret: '!!'}]}}"),
            "not base64",
        ),
        (
            "authorization-config",
            "apiVersion: apiserver.config.k8s.io/v2\nkind: AuthorizationConfiguration\n",
            "knows no AuthorizationConfiguration",
        ),
    ],
)
def test_configuration_files(tree: Tree, flag: str, text: str, word: str) -> None:
    tree.write("/etc/kubernetes/pki/given.yaml", text)
    tree.set_flag("kube-apiserver", flag, "/etc/kubernetes/pki/given.yaml")
    found = findings(tree, "config-file-invalid")
    assert bool(found) is bool(word)
    assert all(word in finding.title for finding in found)
    assert "Zm9v" not in repr(found)


def resources(names: str = "[secrets]", providers: str = "[{identity: {}}]") -> str:
    return f"{CONFIG}EncryptionConfiguration\nresources:\n- resources: {names}\n  providers: {providers}\n"


def kms(**settings: str) -> str:
    given = {"name": "vault", "endpoint": "unix:///run/kms.sock", "apiVersion": "v2", **settings}
    return resources(providers=f"[{{kms: {json.dumps(given)}}}]")


def rule(text: str) -> str:
    return f"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {{level: Metadata, {text}}}\n"


CONFIG = "apiVersion: apiserver.config.k8s.io/v1\nkind: "
AUTHORIZERS = CONFIG + "AuthorizationConfiguration\nauthorizers: "
JWT = (
    CONFIG + "AuthenticationConfiguration\njwt:\n- issuer: {url: 'https://e.org', audiences: [a]}\n"
    "  claimMappings: {username: {claim: sub, prefix: ''}}\n"
)
EGRESS = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: "


# What kube-apiserver 1.36 and 1.37 said of each file: "" for one with which they start.
@pytest.mark.parametrize(
    ("flag", "text", "word"),
    [
        ("encryption-provider-config", resources(), ""),
        ("encryption-provider-config", resources() + "comment: rotated\n", "no field comment"),
        ("encryption-provider-config", resources() + "  comment: rotated\n", "no field resources[0].comment"),
        ("encryption-provider-config", resources() + "  providers: [{identity: {}}]\n", "set twice"),
        ("encryption-provider-config", resources("[secrets, secrets]"), "named twice"),
        ("encryption-provider-config", resources() + "- {resources: [secrets], providers: [{identity: {}}]}\n", ""),
        ("encryption-provider-config", resources("['*.', secrets]"), "covered by another"),
        ("encryption-provider-config", resources("['*.*', deployments.apps]"), "covered by another"),
        ("encryption-provider-config", resources("['*.apps', secrets]"), ""),
        ("encryption-provider-config", resources("['*']"), "must be *."),
        ("encryption-provider-config", resources("[Secrets]"), "capital"),
        ("encryption-provider-config", resources("[events.events.k8s.io]"), "cannot be encrypted"),
        ("encryption-provider-config", resources("['secrets.*']"), "cannot be encrypted"),
        ("encryption-provider-config", resources("[]"), "names no resources"),
        ("encryption-provider-config", resources("secrets"), "must be a list"),
        ("encryption-provider-config", resources(providers="[{identity: }]"), "exactly one of"),
        ("encryption-provider-config", kms(), ""),
        ("encryption-provider-config", kms(apiVersion="v1"), "needs --feature-gates=KMSv1=true"),
        ("encryption-provider-config", kms(apiVersion="v3"), "there are v1 and v2"),
        ("encryption-provider-config", kms(name="a:b"), "without a colon"),
        ("encryption-provider-config", kms(endpoint="http://x"), "must be unix:///PATH"),
        ("encryption-provider-config", kms(timeout="0s"), "above 0"),
        ("audit-policy-file", rule("foo: 1"), ""),
        ("audit-policy-file", rule("omitStages: [RequestRecieved]"), "audit stage 'RequestRecieved'"),
        ("audit-policy-file", rule("omitStages: [RequestReceived, Panic]"), ""),
        ("audit-policy-file", rule("nonResourceURLs: [/healthz*], resources: [{group: ''}]"), "for nonResourceURLs"),
        ("audit-policy-file", rule("nonResourceURLs: [/healthz*, '*'], users: [a]"), ""),
        ("audit-policy-file", rule("nonResourceURLs: [healthz]"), "must begin with /"),
        ("audit-policy-file", rule("resources: [{group: apps/v1}]"), "no API group"),
        ("audit-policy-file", rule("resources: [{group: '*'}, {group: ''}]"), ""),
        ("audit-policy-file", rule("resources: [{group: '', resourceNames: [a]}]"), "resourceNames without"),
        ("audit-policy-file", rule("users: admin"), "must be a list"),
        ("authorization-config", AUTHORIZERS + "[{type: Node, name: node}, {type: RBAC, name: rbac}]\n", ""),
        ("authorization-config", AUTHORIZERS + "[]\n", "lists no authorizers"),
        ("authorization-config", AUTHORIZERS + "[{type: Node}]\n", "a name of its own"),
        ("authorization-config", AUTHORIZERS + "[{type: rbac, name: a}]\n", "authorizer type 'rbac'"),
        ("authorization-config", AUTHORIZERS + "[{type: RBAC, name: a}, {type: RBAC, name: b}]\n", "given twice"),
        ("authorization-config", AUTHORIZERS + "[{type: Webhook, name: a}]\n", "field webhook"),
        ("authentication-config", JWT, ""),
        ("authentication-config", JWT.replace("https", "http"), "must be https://"),
        ("authentication-config", JWT + JWT.partition("jwt:\n")[2], "given once"),
        ("authentication-config", JWT.replace(", prefix: ''", ""), "needs a prefix"),
        ("authentication-config", JWT.replace("audiences", "audience"), "audience"),
        ("authentication-config", JWT + "anonymous: {enabled: false, conditions: [{path: /livez}]}\n", "enabled: true"),
        ("egress-selector-config-file", EGRESS + "[{name: cluster, connection: {proxyProtocol: Direct}}]\n", ""),
        ("egress-selector-config-file", EGRESS + "[{name: nodes}]\n", "is 'nodes'"),
        ("admission-control-config-file", CONFIG + "AdmissionConfiguration\nplugin: []\n", "no field plugin"),
        ("tracing-config-file", CONFIG + "TracingConfiguration\nsamplingRatePerMillion: 2000000\n", "1000000"),
    ],
)
def test_values_in_configuration_files(tree: Tree, flag: str, text: str, word: str) -> None:
    tree.write("/etc/kubernetes/pki/given.yaml", text)
    tree.set_flag("kube-apiserver", flag, "/etc/kubernetes/pki/given.yaml")
    found = findings(tree, "config-file-invalid")
    assert bool(found) is bool(word)
    assert all(word in finding.title for finding in found)
    assert all(finding.evidence[0].line for finding in found)


def test_kms_v1_with_its_gate_or_before_it(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> None:
    old = laid(tmp_path_factory.mktemp("old"), Design(kubernetes="v1.28.15", etcd="3.5.15-0"))
    for one in (tree, old):
        one.write("/etc/kubernetes/pki/given.yaml", kms(apiVersion="v1", comment="kept since 1.31 alone"))
        one.set_flag("kube-apiserver", "encryption-provider-config", "/etc/kubernetes/pki/given.yaml")
    assert titles(old, "config-file-invalid") == []
    tree.set_flag("kube-apiserver", "feature-gates", "KMSv1=true")
    (title,) = titles(tree, "config-file-invalid")
    assert "no field resources[0].providers[0].kms.comment" in title


def test_a_key_in_a_file_written_as_json_is_not_shown(tree: Tree) -> None:
    keys = '{"keys": [{"name": "a", "secret": "MDEyMzQ1Njc4OWFiY2RlZg==", "note": 1}]}'
    tree.write("/etc/kubernetes/pki/given.yaml", resources(providers=f'[{{"aescbc": {keys}}}]'))
    tree.set_flag("kube-apiserver", "encryption-provider-config", "/etc/kubernetes/pki/given.yaml")
    found = findings(tree, "config-file-invalid")
    assert "MDEyMzQ1" not in repr(found)
    assert len(found) == 1


def test_without_a_version_a_rule_of_later_releases_is_not_applied(tree: Tree) -> None:
    tree.sub(APISERVER, r"kube-apiserver:v1\.37\.2", "kube-apiserver:latest")
    tree.write("/etc/kubernetes/pki/given.yaml", resources("[secrets, secrets]") + "comment: rotated\n")
    tree.set_flag("kube-apiserver", "encryption-provider-config", "/etc/kubernetes/pki/given.yaml")
    assert titles(tree, "config-file-invalid") == []


def test_a_scheduler_configuration_that_its_release_no_longer_reads(tree: Tree) -> None:
    where = "/etc/kubernetes/scheduler.conf"
    tree.write(where, "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n")
    tree.set_flag("kube-scheduler", "config", where)
    assert "does not read KubeSchedulerConfiguration" in titles(tree, "config-file-invalid")[0]


# ---- images


def test_minors_mixed_on_one_node_are_the_cause(tree: Tree) -> None:
    tree.sub(SCHEDULER, r":v1\.37\.2", ":v1.36.3")
    assert causes(tree) == ("image-inconsistent",)


def test_patch_releases_and_registries_that_differ_are_warnings(tree: Tree) -> None:
    tree.sub(SCHEDULER, r":v1\.37\.2", ":v1.37.1")
    tree.sub(ETCD, r"registry\.k8s\.io/", "mirror.example.org/")
    assert [f.severity for f in findings(tree, "image-inconsistent")] == [Severity.WARNING, Severity.WARNING]


def test_one_mirror_for_all_is_fine(tree: Tree) -> None:
    for path in (ETCD, APISERVER, SCHEDULER, MANAGER):
        tree.sub(path, r"registry\.k8s\.io/", "mirror.example.org:5000/k8s/")
    assert not findings(tree, "image-inconsistent")


def test_an_image_that_cannot_be_pulled(tree: Tree) -> None:
    tree.sub(ETCD, r"registry\.k8s\.io/etcd", "mirror.example.org/etcd")
    image = "mirror.example.org/etcd:3.7.0-0"
    tree.journal(
        "kubelet", f'E1214 23:00:00 pod_workers.go:1] "Error syncing pod" err="ErrImagePull: failed to pull {image}"'
    )
    assert causes(tree) == ("image-not-pullable",)


@pytest.mark.parametrize(
    "said",
    [
        'E1214 23:00:00 log.go:32] "PullImage from image service failed" err="manifest unknown" image="{image}"',
        '{{"ts":1797289200000.0,"msg":"PullImage from image service failed","image":"{image}"}}',
    ],
)
def test_an_image_that_the_image_service_cannot_pull(tree: Tree, said: str) -> None:
    tree.journal("kubelet", said.format(image="registry.k8s.io/etcd:3.7.0-0"))
    assert causes(tree) == ("image-not-pullable",)


def test_an_image_that_may_not_be_pulled(tree: Tree) -> None:
    tree.replace(ETCD, "imagePullPolicy: IfNotPresent", "imagePullPolicy: Never")
    tree.write("/drtool/images.json", '{"images": [{"id": "sha256:1", "repoTags": ["registry.k8s.io/etcd:3.7.0-0"]}]}')
    assert causes(tree) == ()
    tree.write("/drtool/images.json", '{"images": [{"id": "sha256:1", "repoTags": ["registry.k8s.io/etcd:3.6.0-0"]}]}')
    assert causes(tree) == ("image-not-pullable",)


def test_a_pull_that_worked_later_is_no_fault(tree: Tree) -> None:
    image = "registry.k8s.io/etcd:3.7.0-0"
    tree.journal("kubelet", f'Failed to pull image "{image}": timeout', f'Successfully pulled image "{image}" in 2s')
    assert outcomes(tree.node())["image-not-pullable"].status is Status.PASSED


# ---- requests, network, priority, users


def test_requests_larger_than_the_node(tree: Tree) -> None:
    tree.write("/proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n")
    tree.write("/proc/meminfo", "MemTotal:        8141204 kB\n")
    assert outcomes(tree.node())["requests-exceed-node"].status is Status.PASSED
    tree.replace(APISERVER, "cpu: 100m", "cpu: '3'")
    assert titles(tree, "requests-exceed-node") == ["Static Pods ask for 3.30 CPUs, and the node has 2.00 CPUs to give"]


def test_reserved_resources_count(tree: Tree) -> None:
    tree.write("/proc/cpuinfo", "processor\t: 0\nprocessor\t: 1\n")
    tree.write(KUBELET, tree.read(KUBELET) + "kubeReserved:\n  cpu: 1900m\n")
    assert len(findings(tree, "requests-exceed-node")) == 1


def test_a_control_plane_pod_off_the_hosts_network(tree: Tree) -> None:
    tree.replace(APISERVER, "hostNetwork: true", "hostNetwork: false")
    assert causes(tree) == ("hostnetwork-false",)


def test_a_pod_without_priority_is_a_risk(tree: Tree) -> None:
    tree.sub(SCHEDULER, r" *priority: .*\n *priorityClassName: .*\n", "")
    assert titles(tree, "priority-missing") == ["kube-scheduler has no critical priority: the kubelet may evict it"]
    assert causes(tree) == ()


def test_a_user_that_cannot_read_its_key(tree: Tree) -> None:
    if tree.root.stat().st_uid != 0:
        pytest.skip("owners can be judged only where the tests run as root")
    tree.replace(APISERVER, "securityContext:\n", "securityContext:\n    runAsUser: 1001\n")
    found = findings(tree, "run-as-user-vs-perms")
    assert any("runs as user 1001 and cannot read /etc/kubernetes/pki/apiserver.key" in f.title for f in found)


# ---- leftovers, directories


def test_leftovers_of_editors_are_information(tree: Tree) -> None:
    tree.write(f"{MANIFESTS}/4913", "")
    tree.write(f"{MANIFESTS}/.kube-apiserver.yaml.swp", "x")
    (finding,) = findings(tree, "editor-leftovers")
    assert finding.evidence[0].path == f"{MANIFESTS}/4913"
    assert causes(tree) == ()


def test_an_upgrade_that_did_not_finish(tree: Tree) -> None:
    tree.write("/etc/kubernetes/tmp/kubeadm-upgraded-manifests123/kube-scheduler.yaml", "kind: Pod\n")
    tree.write("/etc/kubernetes/tmp/kubeadm-backup-manifests-2026-11-30/etcd.yaml", "kind: Pod\n")
    (finding,) = findings(tree, "upgrade-leftovers")
    assert "kube-scheduler.yaml" in finding.title


def test_a_policy_among_the_manifests_is_a_risk(tree: Tree) -> None:
    tree.write(f"{MANIFESTS}/audit-policy.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []\n")
    assert titles(tree, "non-pod-file-in-manifests") == [
        f"{MANIFESTS}/audit-policy.yaml is a Policy, not a Pod; the kubelet skips it"
    ]
    assert causes(tree) == ()


def test_a_kubelet_without_a_static_pod_path(tree: Tree) -> None:
    tree.sub(KUBELET, r"staticPodPath: .*\n", "")
    assert causes(tree) == ("staticpodpath-mismatch",)


def test_a_kubelet_that_looks_elsewhere(tree: Tree) -> None:
    tree.sub(KUBELET, r"staticPodPath: .*\n", "staticPodPath: /etc/kubelet.d\n")
    tree.write("/etc/kubelet.d/.keep", "")
    assert causes(tree) == ("staticpodpath-mismatch",)


# ---- no-proxy-incomplete


def _proxy(tree: Tree, path: str, exempt: str) -> None:
    variables = {"HTTPS_PROXY": "http://proxy.example.org:3128", "NO_PROXY": exempt}
    env = "".join(f"    - name: {name}\n      value: {value}\n" for name, value in variables.items())
    tree.sub(path, r"(\n    image: )", f"\n    env:\n{env.rstrip()}\\1")


def test_a_proxy_that_swallows_the_clusters_own_traffic(tree: Tree) -> None:
    _proxy(tree, MANAGER, "127.0.0.1,localhost")
    assert causes(tree) == ("no-proxy-incomplete",)
    assert "this node's address 192.0.2.111" in titles(tree, "no-proxy-incomplete")[0]


def test_the_endpoint_counts_for_those_who_go_by_it(tmp_path: Path) -> None:
    tree = laid(tmp_path, Design(endpoint="k8s.example.org:6443"))
    _proxy(tree, MANAGER, "192.0.2.0/24,10.96.0.0/12,10.244.0.0/16,.svc")
    assert not findings(tree, "no-proxy-incomplete")
    drop_in = "/etc/systemd/system/kubelet.service.d/proxy.conf"
    tree.write(drop_in, '[Service]\nEnvironment="HTTPS_PROXY=http://192.0.2.9:3128" "NO_PROXY=192.0.2.0/24"\n')
    assert titles(tree, "no-proxy-incomplete") == [
        "kubelet uses a proxy, and NO_PROXY does not cover the endpoint k8s.example.org"
    ]


def test_a_complete_no_proxy_is_fine(tree: Tree) -> None:
    _proxy(tree, MANAGER, "127.0.0.1,192.0.2.0/24,10.96.0.0/12,10.244.0.0/16,.svc,.cluster.local")
    assert not findings(tree, "no-proxy-incomplete")


def test_etcd_dials_its_peers_as_the_environment_says(tmp_path: Path) -> None:
    members = {"cp-1": "192.0.2.111", "cp-2": "192.0.2.112"}
    tree = laid(tmp_path, Design(endpoint="192.0.2.100:6443", members=members))
    _proxy(tree, ETCD, "192.0.2.111")
    assert titles(tree, "no-proxy-incomplete") == [
        "etcd uses a proxy, and NO_PROXY does not cover its peer 192.0.2.112"
    ]


def test_a_proxy_in_the_kubelets_environment_file(tree: Tree) -> None:
    tree.write(
        "/etc/systemd/system/kubelet.service", "[Service]\nEnvironmentFile=/etc/proxy\nExecStart=/usr/bin/kubelet\n"
    )
    tree.write("/etc/proxy", "https_proxy=http://proxy.example.org:3128\nno_proxy=localhost\n")
    assert causes(tree) == ("no-proxy-incomplete",)
    tree.write("/etc/proxy", "https_proxy=http://proxy.example.org:3128\nno_proxy=192.0.2.0/24\n")
    assert causes(tree) == ()


@pytest.mark.parametrize(
    ("entries", "name", "covered"),
    [
        (["*"], "10.0.0.1", True),
        (["192.0.2.0/24"], "192.0.2.9", True),
        (["192.0.2.9"], "192.0.2.8", False),
        (["10.0.0.0/8"], "10.96.0.0/12", True),
        (["10.96.0.0/16"], "10.96.0.0/12", False),
        (["example.org"], "k8s.example.org", True),
        ([".example.org"], "example.org", False),
        (["2001:db8::/32"], "2001:db8::1", True),
        (["192.0.2.9:6443"], "192.0.2.9", True),
    ],
)
def test_no_proxy_as_go_reads_it(entries: list[str], name: str, covered: bool) -> None:
    assert covers(entries, name) is covered


def test_quantities() -> None:
    assert [quantity(text) for text in ("250m", "1.5", "1Ki", "2e3", 4, "10%", None)] == [
        0.25,
        1.5,
        1024.0,
        2000.0,
        4.0,
        None,
        None,
    ]


def test_faults_of_two_flags_are_two_causes(tree: Tree) -> None:
    tree.replace(SCHEDULER, "--leader-elect=true", '--leader-elect="true"')
    tree.set_flag("kube-apiserver", "insecure-port", "0")
    tree.set_flag("etcd", "enable-v2", "true")
    tree.replace(MANAGER, "--use-service-account-credentials=", "--use-service-account-credential=")
    assert set(causes(tree)) == {"flag-quoting", "flag-unknown-or-removed", "etcd-flag-vs-version", "flag-typo"}


def test_two_flags_in_one_argument_are_the_one_cause(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "feature-gates", "AllAlpha=false --v=2")
    assert causes(tree) == ("flag-quoting",)


def test_a_flag_of_another_program_stops_etcd(tree: Tree) -> None:
    tree.set_flag("etcd", "service-cluster-ip-range", "10.96.0.0/12")
    assert causes(tree) == ("etcd-flag-vs-version",)
