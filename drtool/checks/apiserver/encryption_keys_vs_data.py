"""The API server must have every key that values in etcd are encrypted with, on every control plane.

Encrypted values name provider and key. A key that was dropped before everything was rewritten, a file that differs
between control planes, or a flag that one of them lacks makes them unreadable: `no matching prefix found`, `invalid
padding on input`. So does a list without `identity` while plain values are left. Plain values with `identity` in the
list are what one sees before everything is rewritten, and fine.

Fix: put the same file, old key included, on every control plane; rewrite all values; only then drop the key. A new
key never helps: get the old one from another control plane or from a backup.
"""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.document import Document
from manifests.node import Node
from snapshots.contents import Sealed
from snapshots.registry import encryption

SEVERITY = Severity.ERROR
EXPLAINS = ("component-not-ready", "container-exited", "webhook-deadlock")
FLAG = "encryption-provider-config"
LENGTHS = {"secretbox": (32,)}


@dataclass(frozen=True, slots=True)
class Provider:
    """`kind` is identity, aescbc, aesgcm, secretbox or kms; `keys` its key names (kms: the plugin's), with secrets."""

    kind: str
    keys: tuple[tuple[str, bytes], ...] = ()

    def has(self, name: str) -> bool:
        return any(key == name for key, _ in self.keys)


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of the configuration: which resources, and the providers in order (the first one writes)."""

    resources: tuple[str, ...]
    providers: tuple[Provider, ...]
    evidence: Evidence

    def covers(self, resource: str) -> bool:
        """`resource` as etcd has it: the group stands in it for custom resources only."""
        group, _, plural = resource.rpartition("/")
        return any(_matches(pattern, group, plural) for pattern in self.resources)

    @property
    def plain(self) -> bool:
        return any(provider.kind == "identity" for provider in self.providers)


def find(case: Case) -> Iterator[Finding]:
    rules, told = _rules(case.node)
    yield from _across(case, rules, told)
    database = case.database
    for values in database.contents.stored:
        rule = next((rule for rule in rules if rule.covers(values.resource)), None)
        problem = _problem(values, rule)
        if problem:
            yield Finding(
                f"{values.count} {values.resource} in etcd cannot be read: {problem}",
                (rule.evidence if rule else told, database.evidence(_example(values))),
            )
    if any(values.provider not in ("", "kms") and not values.value for values in database.contents.stored):
        raise EvidenceMissing("a bundle keeps no values: whether these keys open them is known on the node only")
    if not database.contents.whole:
        raise EvidenceMissing(f"{database.path}: only its newest revisions were read")


def _problem(values: Sealed, rule: Rule | None) -> str:
    if not values.provider:
        return "they are plain, and identity is not among the providers" if rule and not rule.plain else ""
    what = f"{values.provider} {'plugin' if values.provider == 'kms' else 'key'} {values.name}"
    if rule is None:
        return f"they are encrypted with {what}, and no provider is configured for them"
    having = [provider for provider in rule.providers if provider.kind == values.provider and provider.has(values.name)]
    if not having:
        return f"they are encrypted with {what}, which is not in the configuration"
    secrets = tuple(secret for provider in having for key, secret in provider.keys if key == values.name and secret)
    if secrets and values.value and values.provider != "kms" and not _opens(values, secrets):
        return f"they are encrypted with another secret than the one that {what} has"
    return ""


def _opens(values: Sealed, secrets: tuple[bytes, ...]) -> bool:
    keys = encryption.Keys({(values.provider, values.name): secrets})
    try:
        plain = encryption.opened(values.value, values.key, keys)
    except encryption.Locked:
        return False
    return plain.startswith((b"k8s\0", b"{", b"\xd9\xd9\xf7"))


def _example(values: Sealed) -> str:
    how = f"k8s:enc:{values.provider}:...:{values.name}:" if values.provider else "not encrypted"
    return f"{values.key.decode('utf-8', 'backslashreplace')}: {how}"


def _rules(node: Node) -> tuple[tuple[Rule, ...], Evidence]:
    """The configuration, none where the API server has no flag for one; EvidenceMissing where it cannot be had."""
    apiserver = node.apiserver
    if not apiserver.has(FLAG):
        return (), apiserver.pod.evidence(*apiserver.container.position, "command")
    flag = apiserver.flag(FLAG)
    path = apiserver.container.host_path(flag.value) or flag.value
    document = node.document(path)
    if document.get("kind") != "EncryptionConfiguration":
        raise EvidenceMissing(f"{path} is no EncryptionConfiguration")
    return tuple(_parsed(document)), flag.evidence


def _parsed(document: Document) -> Iterator[Rule]:
    for index, entry in enumerate(_dicts(document.get("resources"))):
        providers = tuple(
            _provider(kind, body if isinstance(body, dict) else {})
            for listed in _dicts(entry.get("providers"))
            for kind, body in listed.items()
        )
        resources = tuple(map(str, entry.get("resources") or ()))
        yield Rule(resources, providers, document.evidence("resources", index, "providers"))


def _provider(kind: str, body: dict[str, Any]) -> Provider:
    if kind == "kms":
        return Provider(kind, ((str(body.get("name", "")), b""),))
    keys = tuple((str(key.get("name", "")), _secret(kind, key.get("secret"))) for key in _dicts(body.get("keys")))
    return Provider(kind, keys)


def _secret(kind: str, text: object) -> bytes:
    """Empty where it is masked (a bundle) or unusable, which is another check's matter."""
    try:
        raw = base64.b64decode(str(text or ""), validate=True)
    except (binascii.Error, ValueError):
        return b""
    return raw if len(raw) in LENGTHS.get(kind, (16, 24, 32)) else b""


def _matches(pattern: str, group: str, plural: str) -> bool:
    name, _, wanted = pattern.partition(".")
    if name == "*":
        return not pattern.rstrip("*.") or not group or wanted == group
    return name == plural and (not group or wanted == group)


def _across(case: Case, rules: tuple[Rule, ...], told: Evidence) -> Iterator[Finding]:
    """What one control plane writes, every other one must be able to read."""
    for node in case.others:
        if not node.layout.control_plane:
            continue
        try:
            theirs, said = _rules(node)
        except (EvidenceMissing, NotApplicable):
            continue
        known = {(p.kind, name): secret for rule in rules for p in rule.providers for name, secret in p.keys}
        for rule in theirs:
            writes = rule.providers[0] if rule.providers else Provider("identity")
            name, secret = writes.keys[0] if writes.keys else ("", b"")
            own = known.get((writes.kind, name))
            if writes.kind != "identity" and (own is None or (own and secret and own != secret)):
                yield Finding(
                    f"{node.name} writes {', '.join(rule.resources)} with {writes.kind} key {name}, "
                    "and this API server has no such key",
                    (told, Evidence(said.path, said.line, f"{node.name}: {said.text}")),
                )


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
