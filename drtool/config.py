"""/etc/drtool/config.yaml -> a frozen, typed Config; the environment overrides the file, and flags override both.

Every leaf has an environment variable: `retention.keepLast` is DRTOOL_RETENTION_KEEP_LAST (lists separated by commas),
and DRTOOL_..._FILE names a file that holds the value. The store's credentials are not part of this: see `credentials`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import urlsplit

import msgspec

from drtool.core.errors import UsageError
from drtool.host.reading import small

PATH = Path("/etc/drtool/config.yaml")
MAX_SIZE = 1 << 20
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
SECRET = ("ping.url",)
CENTURY = 36500 * 86400.0
WEB = ("https", "http")
CREDENTIALS = (
    "the store's come from the usual AWS variables, AWS_..._FILE or systemd credentials, etcd's are a certificate"
)
OVERRIDES = "the environment or the options"
OTHER_VARIABLES = {
    "DRTOOL_CONFIG",
    "DRTOOL_REHEARSAL",
    "DRTOOL_REHEARSAL_ROOT",
    "DRTOOL_REHEARSAL_STORE",
    "DRTOOL_TRACEBACK",
}
PRIVATE = re.compile(r"AGE-SECRET-KEY-|age-secret-key-(pq-)?1[a-z0-9]{16}|-----BEGIN [A-Z0-9 ]*PRIVATE KEY")
"""A private key itself, where a public one or a file's name belongs; a file may well be named age-secret-key.txt."""


class Seconds(float):
    """A duration in seconds, written as `90`, `90s`, `15m`, `26h`, `7d` or `4w`."""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One level of the file: names in camelCase, unknown ones refused."""


class StoreConfig(Section, frozen=True):
    url: str = ""
    endpoint: str = ""
    region: str = ""
    path_style: bool = False
    ca: str = ""


class EtcdConfig(Section, frozen=True):
    endpoints: tuple[str, ...] = ()
    ca: str = ""
    cert: str = ""
    key: str = ""


class Signing(Section, frozen=True):
    key: str = ""
    trusted: tuple[str, ...] = ()


class Bundle(Section, frozen=True):
    extra: tuple[str, ...] = ()
    accept_missing: tuple[str, ...] = ()


class Retention(Section, frozen=True):
    """`minimum_count` verified backups always stay, and everything younger than `minimum_age`."""

    keep_last: int = 24
    hourly: int = 48
    daily: int = 14
    weekly: int = 8
    monthly: int = 12
    minimum_count: int = 3
    minimum_age: Seconds = Seconds(86400)


UNCONFIGURED = Retention()


class Schedule(Section, frozen=True):
    """Hints for timers and alerts; drtool starts nothing by itself."""

    every: Seconds = Seconds(3600)
    stale: Seconds = Seconds(26 * 3600)


class Spool(Section, frozen=True):
    """Where sealed backups wait while the store is down; `keep` is how many at most. Empty directory: no spool."""

    directory: str = "/var/lib/drtool/spool"
    keep: int = 3


class Ping(Section, frozen=True):
    """POSTed to URL/start, URL and URL/fail; the URL is a secret where it holds a token."""

    url: str = ""
    timeout: Seconds = Seconds(5)


class Timeouts(Section, frozen=True):
    """Seconds: without a snapshot message; for one call of the store; for all its retries; for a whole run."""

    stall: Seconds = Seconds(60)
    request: Seconds = Seconds(60)
    retries: Seconds = Seconds(600)
    total: Seconds = Seconds(3600)


class Config(Section, frozen=True):
    store: StoreConfig = StoreConfig()
    recipients: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    signing: Signing = Signing()
    etcd: EtcdConfig = EtcdConfig()
    bundle: Bundle = Bundle()
    retention: Retention = UNCONFIGURED
    schedule: Schedule = Schedule()
    spool: Spool = Spool()
    ping: Ping = Ping()
    timeouts: Timeouts = Timeouts()
    metrics_file: str = ""

    @property
    def retains(self) -> bool:
        """Whether somebody set retention rules, be they the default ones: without any, a backup deletes none."""
        return self.retention is not UNCONFIGURED


@dataclass(frozen=True, slots=True)
class Credentials:
    """An S3 key pair; never printed."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def load(
    path: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
) -> Config:
    """The configuration in force. `flags` has dotted names (`store.url`); None and () in it say nothing.

    A file that was named must be there; the default one may be absent. Raises UsageError.
    """
    named = path or (Path(environ["DRTOOL_CONFIG"]) if environ.get("DRTOOL_CONFIG") else None)
    place = named or PATH
    tree = _read(place) if named or place.exists() else {}
    _check(_convert(tree, str(place)), str(place))
    for name, value in _from_environment(environ):
        _put(tree, name, value)
    for name, value in (flags or {}).items():
        if value not in (None, ()):
            _put(tree, name, value)
    config = _convert(tree, OVERRIDES)
    _check(config, OVERRIDES)
    return config


def shown(config: Config) -> dict[str, Any]:
    """As `config show` prints it: secrets masked."""
    tree: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(config, enc_hook=_encode))
    for name in SECRET:
        section, _, leaf = name.partition(".")
        if tree[section][leaf]:
            url = urlsplit(tree[section][leaf])
            tree[section][leaf] = f"{url.scheme}://{url.hostname}/***"
    return tree


def credentials(environ: Mapping[str, str] = os.environ) -> Credentials | None:
    """A key pair from AWS_*_FILE variables or systemd credentials; None: the usual AWS chain decides.

    systemd: LoadCredential= or LoadCredentialEncrypted= with the names aws_access_key_id, aws_secret_access_key and,
    where there is one, aws_session_token.
    """
    found = {}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        place = environ.get(f"{name}_FILE")
        if place is None and environ.get("CREDENTIALS_DIRECTORY"):
            loaded = Path(environ["CREDENTIALS_DIRECTORY"], name.lower())
            place = str(loaded) if loaded.exists() else None
        if place:
            found[name] = _secret(Path(place))
    if not found:
        return None
    if "AWS_ACCESS_KEY_ID" not in found or "AWS_SECRET_ACCESS_KEY" not in found:
        raise UsageError(f"only {', '.join(found)} was given by file", "the access key and the secret key go together")
    return Credentials(found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"], found.get("AWS_SESSION_TOKEN", ""))


def seconds(text: str | float) -> Seconds:
    """`26h` as seconds. Raises ValueError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw]?)\s*", str(text))
    length = float(match[1]) * UNITS[match[2] or "s"] if match else CENTURY
    if length >= CENTURY:
        raise ValueError(f"{text!r} is no duration: write 90s, 15m, 26h, 7d or 4w")
    return Seconds(length)


def _read(path: Path) -> dict[str, Any]:
    import yaml

    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(MAX_SIZE + 1)
    except OSError as gone:
        raise UsageError(f"{path}: {gone.strerror}", "`drtool config example` prints one to start from") from gone
    if len(data) > MAX_SIZE:
        raise UsageError(f"{path} is larger than {MAX_SIZE} bytes: not a configuration of drtool")
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        tree, twice = yaml.load(data, Loader=loader), _twice(yaml.compose(data, loader))  # noqa: S506 - the safe one
    except yaml.YAMLError as wrong:
        mark = getattr(wrong, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{path}{line}: {getattr(wrong, 'problem', None) or 'no YAML'}") from wrong
    if twice:
        raise UsageError(f"{path} sets {twice}, and only one can be meant", "take one of them out")
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise UsageError(f"{path} holds no mapping", "`drtool config example` prints one to start from")
    if mode & 0o044 and _holds_secret(tree):
        raise UsageError(f"{path} holds a secret and can be read by others (mode {mode:04o})", f"chmod 600 {path}")
    return tree


def _twice(root: Any) -> str:
    """The first setting that a section or the file has twice; YAML's reader would take the last one without a word."""
    sections = [root, *(value for _, value in root.value)] if _is_mapping(root) else []
    for section in filter(_is_mapping, sections):
        lines: dict[str, int] = {}
        for key, _ in section.value:
            line, name = key.start_mark.line + 1, str(key.value)
            if name in lines:
                return f"{name} in line {lines[name]} and in line {line}"
            lines[name] = line
    return ""


def _is_mapping(node: Any) -> bool:
    return getattr(node, "id", "") == "mapping"


def _holds_secret(tree: dict[str, Any]) -> bool:
    for name in SECRET:
        section, _, leaf = name.partition(".")
        held = tree.get(section)
        if isinstance(held, dict) and held.get(leaf):
            return True
    return False


def unknown_variables(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """DRTOOL_ names in the environment that nothing reads."""
    known = OTHER_VARIABLES | {_variable(name) + ending for name, _ in _leaves(Config) for ending in ("", "_FILE")}
    return tuple(name for name in environ if name.startswith("DRTOOL_") and name not in known)


def _variable(name: str) -> str:
    return "DRTOOL_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).replace(".", "_").upper()


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    for name, kind in _leaves(Config):
        variable = _variable(name)
        text = environ.get(variable)
        if text is None and environ.get(f"{variable}_FILE"):
            text = _secret(Path(environ[f"{variable}_FILE"]))
        if text is not None:
            listed = kind == tuple[str, ...]
            yield name, [part.strip() for part in text.split(",") if part.strip()] if listed else text


def _leaves(section: type[Section], before: str = "") -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(section)
    for one in msgspec.structs.fields(section):
        kind = hints[one.name]
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _leaves(kind, f"{before}{one.encode_name}.")
        else:
            yield before + one.encode_name, kind


def _put(tree: dict[str, Any], name: str, value: object) -> None:
    *sections, leaf = name.split(".")
    for section in sections:
        inner = tree.get(section)
        tree[section] = tree = dict(inner) if isinstance(inner, dict) else {}
    tree[leaf] = value


def _convert(tree: dict[str, Any], place: str) -> Config:
    try:
        return msgspec.convert(tree, Config, strict=False, dec_hook=_decode)
    except msgspec.ValidationError as wrong:
        raise UsageError(
            f"{place}: {str(wrong).replace(' - at `$', ' at `').replace('`.', '`')}",
            "`drtool config example` names every setting",
        ) from wrong


def _check(config: Config, place: str) -> None:
    _check_private(msgspec.to_builtins(config, enc_hook=_encode), place)
    _check_url(place, "store.url", config.store.url, ("file", "s3"), "file:///path or s3://bucket/prefix")
    _check_url(place, "store.endpoint", config.store.endpoint, WEB, "https://s3.example.com")
    _check_url(place, "ping.url", config.ping.url, WEB, "https://host/path")
    for url in config.etcd.endpoints:
        _check_url(place, "etcd.endpoints", url, (), "https://127.0.0.1:2379")
    numbers = config.retention
    counts = (numbers.keep_last, numbers.hourly, numbers.daily, numbers.weekly, numbers.monthly, numbers.minimum_count)
    if min(counts) < 0:
        raise UsageError(f"{place}: a retention count is negative")
    if config.spool.directory and not Path(config.spool.directory).is_absolute():
        raise UsageError(
            f"{place}: spool.directory is not absolute: {config.spool.directory}",
            "write it from / on: a cron job runs in another directory than you do",
        )
    if config.spool.keep < 1:
        raise UsageError(f"{place}: spool.keep is less than 1", "the newest backup is never dropped")


def _check_private(tree: dict[str, Any], place: str, before: str = "") -> None:
    """First of all: other refusals, and `config show`, repeat what a setting holds."""
    for name, value in tree.items():
        if isinstance(value, dict):
            _check_private(value, place, f"{before}{name}.")
        elif any(PRIVATE.search(str(text)) for text in (value if isinstance(value, list | tuple) else (value,))):
            raise UsageError(
                f"{place}: {before}{name} holds a private key",
                "give its public half: age-keygen -y FILE" if name == "recipients" else "name the file that holds it",
            )


def _check_url(place: str, name: str, url: str, schemes: tuple[str, ...], example: str) -> None:
    """What it is set to is not repeated: it may hold a secret."""
    try:
        parts = urlsplit(url)
    except ValueError as wrong:
        raise UsageError(f"{place}: {name} is no URL: {wrong}", f"write it as {example}") from None
    host = parts.netloc if "://" in url else url
    if name not in SECRET and ("@" in host or (parts.scheme == "s3" and ":" in host)):
        raise UsageError(f"{name} holds credentials", CREDENTIALS)
    if url and schemes and parts.scheme not in schemes:
        raise UsageError(f"{place}: {name} begins with neither {' nor '.join(f'{one}://' for one in schemes)}",
                         f"write it as {example}")  # fmt: skip


def _secret(path: Path) -> str:
    try:
        return small(path).decode().strip()
    except (OSError, UnicodeDecodeError) as gone:
        why = gone.strerror if isinstance(gone, OSError) else "no text"
        raise UsageError(f"{path}: {why}", "a ..._FILE variable or a systemd credential names it") from gone


def _decode(kind: type, value: object) -> object:
    if kind is Seconds and isinstance(value, str | int | float):
        return seconds(value)
    raise ValueError(f"{value!r} is not what belongs here")


def _encode(value: object) -> object:
    if isinstance(value, Seconds):
        return f"{float(value):g}s"
    raise NotImplementedError


EXAMPLE = """\
# /etc/drtool/config.yaml. Every setting has an environment variable too: store.url is DRTOOL_STORE_URL.
# Credentials of the store never stand here: AWS_ACCESS_KEY_ID_FILE, systemd credentials or the usual AWS chain.
store:
  url: s3://backups/clusters        # or file:///mnt/backups
  endpoint: https://s3.example.com  # leave out on AWS
  region: eu-central-1
  pathStyle: true                   # most stores that are not AWS
  ca: ""                            # PEM file, where the endpoint's certificate is from a private CA

# age public keys (age-keygen). The node can write backups that it cannot read. None: backups are NOT encrypted.
recipients: []
# age identity files, only where backups are read: for verify and restore. Keep them off the nodes.
identities: []

signing:
  key: ""       # Ed25519 private key, PEM: openssl genpkey -algorithm ed25519
  trusted: []   # public keys (PEM files): with any of them here, unsigned backups are not believed

etcd:           # all empty: read from the etcd manifest of this node
  endpoints: []
  ca: ""
  cert: ""
  key: ""

bundle:
  extra: []          # further files of this node to keep, e.g. /etc/kubernetes/my-webhook.yaml
  acceptMissing: []  # files whose absence is intended, e.g. /etc/kubernetes/pki/ca.key with an external CA

retention:      # applied by `drtool backup` and `drtool prune`; only verified backups count. Without this section
                # `drtool backup` deletes nothing
  keepLast: 24
  hourly: 48
  daily: 14
  weekly: 8
  monthly: 12
  minimumCount: 3
  minimumAge: 24h

schedule:       # hints for timers and alerts
  every: 1h
  stale: 26h

spool:          # where sealed backups wait while the store is down
  directory: /var/lib/drtool/spool
  keep: 3

ping:           # POST to URL/start, URL, URL/fail; a secret: then this file must be mode 600
  url: ""
  timeout: 5s

metricsFile: "" # e.g. /var/lib/node_exporter/textfile_collector/drtool.prom

timeouts:
  stall: 60s
  request: 60s
  retries: 10m
  total: 1h
"""
