"""What is taken out of a bundle's files, and what must stay as it was."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.document import Unparsable, parse
from manifests.pki.certificates import read_pem
from manifests.pki.issuing import new_key, private_pem
from manifests.redaction import Redaction

KEY = private_pem(new_key("RSA-2048"))
SECRET = "S3cret0123456789abcdef"


def redacted(path: str, text: str) -> str:
    data = Redaction().file(path, text.encode())
    assert data is not None
    return data.decode()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/kubernetes/a.conf", f"kind: Config\nusers: [{{user: {{token: {SECRET}}}}}]\n"),
        ("/etc/kubernetes/a.conf", f"kind: Config\nusers:\n- user:\n    password: |\n      {SECRET}\n"),
        ("/etc/kubernetes/a.conf", f'{{"kind": "Config", "users": [{{"user": {{"token": "{SECRET}"}}}}]}}'),
        ("/etc/kubernetes/a.conf", f"kind: Config\nbroken: [\ntoken:\n  {SECRET}\n"),
        ("/etc/kubernetes/manifests/a.yaml", f"kind: Pod\nspec: {{x: [--etcd-password={SECRET}]}}\n"),
        ("/etc/kubernetes/manifests/a.yaml", f"kind: Pod\nx: 1\nx: 2\ntoken: {SECRET}\ntoken: {SECRET}2\n"),
        (
            "/etc/kubernetes/manifests/a.yaml",
            f'kind: Pod\nmetadata: {{annotations: {{a: "{{\\"token\\":\\"{SECRET}\\"}}"}}}}\n',
        ),
        ("/etc/kubernetes/manifests/a.yaml", f"kind: Pod\n# the old password: {SECRET}\n"),
        ("/etc/crio/crio.conf", f'[a]\npassword = "{SECRET}"\n'),
        ("/etc/default/kubelet", f'KUBELET_EXTRA_ARGS="--bearer-token={SECRET}"\n'),
        ("/drtool/journal/kubelet.log", f"2026-11-30T00:00:00Z a b[1]: Authorization: Bearer {SECRET}\n"),
        ("/var/log/pods/a/b/0.log", f"2026-11-30T00:00:00Z stderr F https://user:{SECRET}@registry.example.org\n"),
    ],
)
def test_secrets_go_and_lines_stay(path: str, text: str) -> None:
    made = redacted(path, text)
    assert SECRET not in made
    assert "withheld" in made
    assert made.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "/etc/kubernetes/manifests/a.yaml",
            "kind: Pod\nspec: {volumes: [{name: a, secret: {secretName: my-secret-name}}]}\n",
        ),
        (
            "/etc/kubernetes/manifests/a.yaml",
            "kind: Pod\nx:\n- --token-auth-file=/etc/tokens.csv\n- --enable-bootstrap-token-auth=true\n",
        ),
        (
            "/etc/kubernetes/manifests/a.yaml",
            "kind: Pod\nx:\n- --service-account-key-file=/etc/kubernetes/pki/sa.pub\n",
        ),
        ("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\nauthentication: {webhook: {cacheTTL: 2m0s}}\n"),
        ("/etc/kubernetes/manifests/a.yaml", "kind: Pod\nx: [--authentication-token-webhook-cache-ttl=10m0s]\n"),
        ("/etc/hosts", "127.0.0.1 localhost\n192.0.2.1 cp-1\n"),
        (
            "/var/log/pods/a/b/0.log",
            "2026-11-30T00:00:00Z stderr F Failed to watch *v1.Secret: failed to list *v1.Secret\n",
        ),
        (
            "/var/log/pods/a/b/0.log",
            "2026-11-30T00:00:00Z stderr F [invalid bearer token, service account token has expired]\n",
        ),
        (
            "/drtool/journal/kubelet.log",
            "2026-11-30T00:00:00Z a b[1]: E1130 x509: certificate has expired or is not yet valid\n",
        ),
        ("/proc/net/fib_trie", "        |-- 192.0.2.1\n           /32 host LOCAL\n"),
    ],
)
def test_what_is_no_secret_stays(path: str, text: str) -> None:
    assert redacted(path, text) == text


def test_a_private_key_leaves_its_public_half() -> None:
    redaction = Redaction()
    made = redaction.file("/etc/kubernetes/pki/a.key", KEY)
    assert made is not None
    expected = read_pem("/a", KEY)
    assert read_pem("/a", made) == expected
    assert redaction.keys == {"/etc/kubernetes/pki/a.key": expected.private_keys}
    assert made.count(b"\n") == KEY.count(b"\n")
    embedded = base64.b64encode(KEY).decode()
    conf = redacted("/etc/kubernetes/a.conf", f"kind: Config\nusers: [{{user: {{client-key-data: {embedded}}}}}]\n")
    kept = parse("/a", conf.encode())[0].get("users", 0, "user", "client-key-data")
    assert read_pem("/a", base64.b64decode(kept)).private_keys == expected.private_keys


def test_an_encryption_key_becomes_another_of_its_length() -> None:
    text = "kind: EncryptionConfiguration\nresources: [{providers: [{aescbc: {keys: [{name: a, secret: %s}]}}]}]\n"
    where = ("resources", 0, "providers", 0, "aescbc", "keys", 0, "secret")

    def kept(secret: str) -> str:
        value: str = parse("/e", redacted("/etc/kubernetes/e.yaml", text % secret).encode())[0].get(*where)
        return value

    one, other = base64.b64encode(b"1" * 32).decode(), base64.b64encode(b"2" * 32).decode()
    assert kept(one) == kept(one)
    assert len({one, other, kept(one), kept(other)}) == 4
    assert len(base64.b64decode(kept(one))) == 32
    assert "withheld" in kept("'not base64'")


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/etc/kubernetes/tokens.csv", b"abc,admin,1\n"),
        ("/etc/kubernetes/manifests/.a.yaml.swp", b"b0VIM\0\0"),
        ("/srv/anything", b"no kind of file that is known"),
    ],
)
def test_of_an_unknown_file_nothing_leaves(path: str, data: bytes) -> None:
    assert Redaction().file(path, data) is None


def test_a_secret_of_one_file_is_taken_out_of_the_others() -> None:
    redaction = Redaction()
    redaction.file("/etc/kubernetes/a.conf", f"kind: Config\nusers: [{{user: {{token: {SECRET}}}}}]\n".encode())
    assert redaction.last_look(f"used {SECRET} for it".encode()) == b"used withheld for it"


PATHS = st.sampled_from(
    ["/etc/kubernetes/a.conf", "/etc/kubernetes/pki/a.key", "/etc/kubernetes/pki/a.crt", "/a.json", "/var/log/a", "/a"]
)


@given(PATHS, st.binary(max_size=300))
def test_any_bytes_are_redacted(path: str, data: bytes) -> None:
    redaction = Redaction()
    made = redaction.file(path, data)
    assert made is None or isinstance(redaction.last_look(made), bytes)


WORDS = st.text("abcdefghij0123456789", min_size=16, max_size=30)
SHAPES = st.recursive(
    st.integers() | st.text("xyz -:'\"\nü", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name", "x-y"]), inner),
    max_leaves=8,
)


@given(SHAPES, SHAPES, WORDS, st.sampled_from(["token", "password", "client-secret", "apiKey", "certificateKey"]))
def test_a_secret_goes_and_the_rest_of_a_document_stays(before: object, after: object, secret: str, key: str) -> None:
    import yaml

    whole = {"kind": "Config", "before": before, key: "s0" + secret, "after": after}
    for text in (yaml.safe_dump(whole, allow_unicode=True), yaml.safe_dump(whole, default_flow_style=True)):
        try:
            parse("/a", text.encode())
        except Unparsable:
            continue
        made = redacted("/etc/kubernetes/a.yaml", text)
        assert secret not in made
        assert parse("/a", made.encode())[0].data == {**parse("/a", text.encode())[0].data, key: "withheld"}
