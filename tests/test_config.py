from __future__ import annotations

from pathlib import Path

import pytest

from drtool.config import EXAMPLE, Config, credentials, load, seconds, shown, unknown_variables
from drtool.core.errors import UsageError


def written(directory: Path, text: str, mode: int = 0o600) -> Path:
    path = directory / "config.yaml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_example_is_valid_and_names_every_setting(tmp_path: Path) -> None:
    config = load(written(tmp_path, EXAMPLE), {})
    assert config.store.url == "s3://backups/clusters"
    assert config == Config(store=config.store)

    def leaves(tree: dict[str, object]) -> set[str]:
        return {k for k, v in tree.items()} | {x for v in tree.values() if isinstance(v, dict) for x in leaves(v)}

    assert all(f"{name}:" in EXAMPLE for name in leaves(shown(config)))


def test_the_environment_overrides_the_file_and_flags_override_both(tmp_path: Path) -> None:
    path = written(tmp_path, "store: {url: 'file:///a'}\nretention: {keepLast: 1, hourly: 2}\n")
    (tmp_path / "ping").write_text("https://hc.example/uuid\n")
    environment = {
        "DRTOOL_RETENTION_KEEP_LAST": "5",
        "DRTOOL_RETENTION_MINIMUM_AGE": "2d",
        "DRTOOL_RECIPIENTS": "age1a, age1b",
        "DRTOOL_STORE_PATH_STYLE": "true",
        "DRTOOL_STORE_URL": "file:///b",
        "DRTOOL_PING_URL_FILE": str(tmp_path / "ping"),
    }
    config = load(path, environment, {"store.url": "file:///c", "recipients": (), "store.endpoint": None})
    assert config.store.url == "file:///c"
    assert config.store.path_style is True
    assert config.recipients == ("age1a", "age1b")
    assert (config.retention.keep_last, config.retention.hourly) == (5, 2)
    assert config.retention.minimum_age == 172800
    assert config.ping.url == "https://hc.example/uuid"


@pytest.mark.parametrize(
    ("text", "environment", "retains"),
    [
        ("store: {url: 'file:///a'}", {"DRTOOL_SPOOL_KEEP": "2"}, False),
        ("retention: {keepLast: 24}", {}, True),
        ("retention: {}", {}, True),
        ("", {"DRTOOL_RETENTION_MINIMUM_AGE": "24h"}, True),
        (EXAMPLE, {}, True),
    ],
)
def test_retention_is_known_to_be_configured(
    tmp_path: Path, text: str, environment: dict[str, str], retains: bool
) -> None:
    assert load(written(tmp_path, text), environment, {"store.url": "file:///b"}).retains is retains


def test_the_default_file_may_be_absent_a_named_one_not(tmp_path: Path) -> None:
    assert load(None, {}) is not None
    for given in ({"path": tmp_path / "no.yaml"}, {"environ": {"DRTOOL_CONFIG": str(tmp_path / "no.yaml")}}):
        with pytest.raises(UsageError, match="No such file"):
            load(**{"environ": {}, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("stroe: {}", "unknown field `stroe`"),
        ("retention: {keepLast: many}", r"retention\.keepLast"),
        ("retention: {keepLast: -1}", "negative"),
        ("timeouts: {stall: 5y}", "no duration"),
        ("retention: {minimumAge: -86400}", "no duration"),
        ("timeouts: {total: .nan}", "no duration"),
        ("timeouts: {total: true}", "no duration"),
        ("retention: {minimumCount: -1}", "negative"),
        ("recipients: []\nrecipients: [age1x]", "recipients in line 1 and in line 2"),
        ("store:\n  url: file:///a\n  url: file:///b", "url in line 2 and in line 3"),
        ("store: {url: 's3://[bucket'}", "store.url is no URL"),
        ("ping: {url: 'https://[secret@host'}", "ping.url is no URL"),
        ("ping: {url: 'ftp://secret@host'}", "ping.url begins with neither"),
        ("store: {endpoint: 'host:9000'}", "store.endpoint begins with neither"),
        ("store: {endpoint: 'https://key:secret@host'}", "store.endpoint holds credentials"),
        ("store: {url: 's3://key:secret/@bucket'}", "store.url holds credentials"),
        ("etcd: {endpoints: ['root:secret@host:2379']}", "etcd.endpoints holds credentials"),
        ("store: {url: 'ftp://x'}", "neither file"),
        ("- a", "no mapping"),
        ("a: [", "line [12]"),
        ("spool: {directory: spool}", "spool.directory is not absolute: spool"),
        ("spool: {keep: 0}", "less than 1"),
        ("store: {url: 's3://key:secret@bucket'}", "credentials"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as refused:
        load(written(tmp_path, text), {})
    assert "secret@" not in str(refused.value)


def test_a_file_with_a_secret_must_not_be_readable_by_others(tmp_path: Path) -> None:
    secret = "ping: {url: 'https://hc.example/uuid'}"
    with pytest.raises(UsageError, match="chmod 600"):
        load(written(tmp_path, secret, 0o644), {})
    assert load(written(tmp_path, secret, 0o600), {}).ping.url
    load(written(tmp_path, "recipients: []", 0o644), {})


KEY = f"AGE-SECRET-KEY-1{'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L' * 2}"[:74]
PEM = "-----BEGIN PRIVATE KEY-----\\nMC4CAQAwBQYDK2VwBCIEIA\\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"recipients: [age1x, {KEY}]", "recipients"),
        (f"recipients: [{KEY.lower()}]", "recipients"),
        (f"identities: [{KEY}]", "identities"),
        (f"spool: {{directory: {KEY}}}", "spool.directory"),
        (f'signing: {{key: "{PEM}"}}', "signing.key"),
        (f'signing: {{trusted: ["{PEM}"]}}', "signing.trusted"),
    ],
)
def test_a_private_key_is_refused_and_never_shown(tmp_path: Path, text: str, name: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(written(tmp_path, text), {})
    told = "give its public half: age-keygen -y FILE" if name == "recipients" else "name the file that holds it"
    assert str(refused.value) == f"{tmp_path}/config.yaml: {name} holds a private key; {told}"


def test_a_private_key_among_the_options_is_not_shown_either(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="recipients holds a private key") as refused:
        load(None, {"DRTOOL_RECIPIENTS": f"age1x,{KEY}"})
    assert KEY[15:] not in str(refused.value)
    with pytest.raises(UsageError, match="identities holds a private key"):
        load(None, {}, {"identities": (f"# public key\n{KEY}",)})
    assert load(None, {}, {"identities": ("/root/age-secret-key.txt",)}).identities


def test_secrets_are_masked(tmp_path: Path) -> None:
    config = load(written(tmp_path, "ping: {url: 'https://hc.example/uuid'}"), {})
    assert shown(config)["ping"]["url"] == "https://hc.example/***"


def test_credentials_come_from_files_and_are_never_shown(tmp_path: Path) -> None:
    assert credentials({}) is None
    (tmp_path / "aws_access_key_id").write_text("AKIA\n")
    with pytest.raises(UsageError, match="go together"):
        credentials({"CREDENTIALS_DIRECTORY": str(tmp_path)})
    (tmp_path / "aws_secret_access_key").write_text("hush\n")
    found = credentials({"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert found is not None
    assert (found.access_key, found.secret_key) == ("AKIA", "hush")
    assert "hush" not in repr(found)
    named = credentials(
        {
            "AWS_ACCESS_KEY_ID_FILE": str(tmp_path / "aws_access_key_id"),
            "AWS_SECRET_ACCESS_KEY_FILE": str(tmp_path / "aws_secret_access_key"),
        }
    )
    assert named == found
    with pytest.raises(UsageError, match="No such file"):
        credentials({"AWS_ACCESS_KEY_ID_FILE": str(tmp_path / "none")})
    (tmp_path / "bytes").write_bytes(b"\xff\0")
    with pytest.raises(UsageError, match="no text"):
        credentials({"AWS_ACCESS_KEY_ID_FILE": str(tmp_path / "bytes")})


def test_what_overrides_the_file_is_named_where_it_is_wrong(tmp_path: Path) -> None:
    place = written(tmp_path, "store: {url: 'file:///mnt'}")
    with pytest.raises(UsageError, match=r"^the environment or the options: .*keepLast"):
        load(place, {"DRTOOL_RETENTION_KEEP_LAST": "many"})


def test_variables_that_nothing_reads_are_known() -> None:
    environment = {
        "DRTOOL_STORE_URL": "",
        "DRTOOL_STOER_URL": "",
        "DRTOOL_RETENTION_KEEPLAST": "",
        "DRTOOL_PING_URL_FILE": "",
        "DRTOOL_CONFIG": "",
        "DRTOOL_TRACEBACK": "",
        "_DRTOOL_COMPLETE": "",
        "PATH": "",
    }
    assert unknown_variables(environment) == ("DRTOOL_STOER_URL", "DRTOOL_RETENTION_KEEPLAST")


def test_durations() -> None:
    assert [seconds(text) for text in ("90", "90s", "15m", "26h", "7d", "4w", "1.5h")] == [
        90, 90, 900, 93600, 604800, 2419200, 5400,
    ]  # fmt: skip
    for text in ("", "h", "-1h", "5y", "1h30m", "9999999w", float("inf"), -1):
        with pytest.raises(ValueError, match="no duration"):
            seconds(text)
