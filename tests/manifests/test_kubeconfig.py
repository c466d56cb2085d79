"""Kubeconfigs: server, trust, credentials, and what makes one unusable."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.document import Unparsable, parse
from manifests.kubeconfig import Kubeconfig, read_kubeconfig, split_url
from manifests.pki.issuing import issue, issue_authority, new_key

CA = issue_authority("kubernetes", datetime(2026, 11, 30, tzinfo=UTC), new_key("ECDSA-P256"))
CLIENT = issue(CA, "system:node:cp-1", ("clientAuth",), datetime(2026, 11, 30, tzinfo=UTC), new_key("ECDSA-P256"))


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


EMBEDDED = f"""apiVersion: v1
kind: Config
current-context: a
contexts: [{{name: a, context: {{cluster: c, user: u}}}}, {{name: b, context: {{cluster: x, user: y}}}}]
clusters:
- name: c
  cluster:
    server: https://192.0.2.1:6443
    certificate-authority-data: {b64(CA.certificate_pem)}
users:
- name: u
  user:
    client-certificate-data: {b64(CLIENT.certificate_pem)}
    client-key-data: {b64(CLIENT.key_pem)}
"""


def read(text: str) -> Kubeconfig:
    return read_kubeconfig(parse("/etc/kubernetes/admin.conf", text.encode())[0])


def test_the_current_context_counts() -> None:
    config = read(EMBEDDED)
    assert (config.server, config.host, config.port, config.user) == ("https://192.0.2.1:6443", "192.0.2.1", 6443, "u")
    assert config.server_evidence.line == 8
    assert config.ca is not None
    assert config.client is not None
    assert config.key is not None
    assert config.client.certificates[0].common_name == "system:node:cp-1"
    assert config.key.private_keys == (config.client.certificates[0].public_key,)
    assert not config.problem


def test_files_are_named_not_read() -> None:
    config = read(EMBEDDED.split("    client-cert")[0] + "    client-certificate: /c.pem\n    client-key: /c.pem\n")
    assert (config.client_file, config.key_file, config.client, config.key) == ("/c.pem", "/c.pem", None, None)
    assert config.client_evidence.line == 13


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("kind: Config", "kind: Pod", "kind is Pod"),
        ("kind: Config", "kind: [Config]", "kind is"),
        ("current-context: a", "current-context: z", 'current-context "z" is not among'),
        ("cluster: c", "cluster: d", 'no cluster "d" with a server'),
        (f"client-key-data: {b64(CLIENT.key_pem)}", "client-key-data: '!!'", "client-key-data is not base64"),
        (b64(CLIENT.key_pem), b64(b"no PEM"), "client-key-data: no PEM block"),
    ],
    ids=["kind", "kind-list", "context", "cluster", "no-base64", "no-pem"],
)
def test_what_makes_it_unusable_is_said(old: str, new: str, problem: str) -> None:
    assert problem in read(EMBEDDED.replace(old, new)).problem


def test_a_token_is_a_credential() -> None:
    assert read(EMBEDDED.split("    client-cert")[0] + "    token: abc\n").has_token


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://[2001:db8::1]:6443", ("2001:db8::1", 6443)),
        ("https://vip.example.org", ("vip.example.org", 443)),
        ("192.0.2.1:2379", ("192.0.2.1", 2379)),
        ("https://[::1", ("", None)),
        ("https://a:99999", ("", None)),
        ("", ("", None)),
    ],
)
def test_urls(url: str, expected: tuple[str, int | None]) -> None:
    assert split_url(url) == expected


WORDS = (
    "kind current-context contexts clusters users name context cluster user server token client-certificate-data "
    "client-key-data client-certificate certificate-authority-data"
)
KEYS = st.sampled_from(WORDS.split())
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_shape_is_a_kubeconfig_or_has_a_problem(shape: dict[str, object]) -> None:
    import json

    try:
        [document] = parse("/x.conf", json.dumps(shape).encode())
    except Unparsable:
        return
    config = read_kubeconfig(document)
    assert config.problem or config.server
