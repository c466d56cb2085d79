"""What the API server refuses in its configuration files once kind and version are right, each with its line.

As the validation of k8s.io/apiserver (pkg/apis/apiserver/validation, pkg/apis/audit/validation) in 1.24 to 1.37 has it,
tried on kube-apiserver 1.36 and 1.37. A rule of later releases is not applied where the version is unknown.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from drtool.core.report import Evidence
from manifests.document import Document, Path
from manifests.pod import Component
from manifests.releases import tables
from manifests.releases.configurations import STRICT_SINCE, mistyped, unknown

Refused = tuple[str, Evidence]

LEVELS = ("None", "Metadata", "Request", "RequestResponse")
STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
KEY_LENGTHS = {"aescbc": (16, 24, 32), "aesgcm": (16, 24, 32), "secretbox": (32,)}
PROVIDERS = (*KEY_LENGTHS, "identity", "kms")
NO_REST = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")
RESOURCE_NAMES_SINCE = 27
KMS_V1_GATED_SINCE = 29
AUTHORIZERS = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")
PROTOCOLS = ("Direct", "HTTPConnect", "GRPC")
SELECTIONS = ("cluster", "controlplane", "etcd")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def refused_values(document: Document, kind: str, component: Component) -> Iterator[Refused]:
    minor = component.version[1] if component.version else 0
    wrong = tuple(mistyped(kind, document.data))
    for path, wanted in wrong:
        yield f"{document.path}: {dotted(path)} must be {wanted}", document.evidence(*path)
    if wrong:
        return
    if STRICT_SINCE.get(kind, tables.NEWEST + 1) <= minor <= tables.NEWEST:
        for key, line in document.duplicates:
            yield f'{document.path}: "{key}" is set twice, which the API server refuses', Evidence(document.path, line)
        for path in unknown(kind, document.data):
            yield f"{document.path}: there is no field {dotted(path)} in {kind}", document.evidence(*path)
    match kind:
        case "EncryptionConfiguration":
            yield from _encryption(document, component, minor)
        case "Policy":
            yield from _audit(document)
        case "AuthorizationConfiguration":
            yield from _authorization(document)
        case "AuthenticationConfiguration":
            yield from _authentication(document, component)
        case "EgressSelectorConfiguration":
            yield from _egress(document)
        case "TracingConfiguration":
            rate = document.get("samplingRatePerMillion", default=0)
            if not 0 <= rate <= 1_000_000:
                where = document.evidence("samplingRatePerMillion")
                yield f"{document.path}: samplingRatePerMillion must be between 0 and 1000000", where


def dotted(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _items(document: Document, *path: str | int) -> list[Any]:
    """A list of structs; null is an empty one."""
    return [{} if item is None else item for item in document.get(*path, default=())]


def _words(document: Document, *path: str | int) -> list[str]:
    return ["" if item is None else item for item in document.get(*path, default=())]


# ---- audit policy


def _audit(document: Document) -> Iterator[Refused]:
    rules = _items(document, "rules")
    if not rules:
        yield f"{document.path} has no rules, which the API server refuses", document.evidence("rules")
    yield from _stages(document, ())
    for index, rule in enumerate(rules):
        where = ("rules", index)
        if rule.get("level") not in LEVELS:
            title = f"{document.path}: audit level {rule.get('level')!r} is none of {', '.join(LEVELS)}"
            yield title, document.evidence(*where, "level")
        yield from _stages(document, where)
        urls = _words(document, *where, "nonResourceURLs")
        if urls and (rule.get("resources") or rule.get("namespaces")):
            title = f"{document.path}: rules[{index}] is for resources and for nonResourceURLs, which is refused"
            yield title, document.evidence(*where, "nonResourceURLs")
        for place, url in enumerate(urls):
            if url != "*" and (not url.startswith("/") or "*" in url[:-1]):
                title = f"{document.path}: nonResourceURL {url!r} must begin with / and may have * at its end alone"
                yield title, document.evidence(*where, "nonResourceURLs", place)
        for place, group in enumerate(_items(document, *where, "resources")):
            name = group.get("group") or "*"
            if name != "*" and not SUBDOMAIN.fullmatch(name):
                title = f"{document.path}: {name!r} is no API group (a group has no version and no capitals)"
                yield title, document.evidence(*where, "resources", place, "group")
            if group.get("resourceNames") and not group.get("resources"):
                title = f"{document.path}: resourceNames without resources, which is refused"
                yield title, document.evidence(*where, "resources", place, "resourceNames")


def _stages(document: Document, where: Path) -> Iterator[Refused]:
    for index, stage in enumerate(_words(document, *where, "omitStages")):
        if stage not in STAGES:
            title = f"{document.path}: audit stage {stage!r} is none of {', '.join(STAGES)}"
            yield title, document.evidence(*where, "omitStages", index)


# ---- encryption


def _encryption(document: Document, component: Component, minor: int) -> Iterator[Refused]:
    groups = _items(document, "resources")
    if not groups:
        yield f"{document.path} lists no resources", document.evidence("resources")
    names: set[str] = set()
    for index, _ in enumerate(groups):
        where = ("resources", index)
        resources, providers = _words(document, *where, "resources"), _items(document, *where, "providers")
        if not resources:
            yield f"{document.path}: resources[{index}] names no resources", document.evidence(*where)
        if minor >= RESOURCE_NAMES_SINCE:
            yield from _resources(document, resources, (*where, "resources"))
        if not providers:
            yield f"{document.path}: resources[{index}] has no providers", document.evidence(*where)
        for number, provider in enumerate(providers):
            yield from _provider(document, provider, (*where, "providers", number))
            if provider.get("kms") is not None:
                yield from _kms(document, component, minor, (*where, "providers", number, "kms"), names)


def _resources(document: Document, resources: list[str], where: Path) -> Iterator[Refused]:
    pairs = [(name.partition(".")[0], name.partition(".")[2]) for name in resources]
    for index, (name, (resource, group)) in enumerate(zip(resources, pairs, strict=True)):
        fault = ""
        if name.lower() != name:
            fault = "has capital letters"
        elif name == "*":
            fault = "must be *. for the core group or *.* for all groups"
        elif name in NO_REST or group in {"events.k8s.io", "extensions"} or (group == "*" and resource != "*"):
            fault = "cannot be encrypted by this name"
        elif pairs.index((resource, group)) < index:
            fault = "is named twice"
        elif any(_covers(pair, (resource, group)) for pair in pairs if pair != (resource, group)):
            fault = "is covered by another entry of its list"
        if fault:
            yield f"{document.path}: the API server refuses {name}, which {fault}", document.evidence(*where, index)


def _covers(wide: tuple[str, str], narrow: tuple[str, str]) -> bool:
    return wide == ("*", "*") or (wide[0] == "*" and wide[1] == narrow[1])


def _provider(document: Document, provider: Any, where: Path) -> Iterator[Refused]:
    given = [name for name in provider if provider[name] is not None]
    if len(given) != 1:
        yield f"{document.path}: a provider must be exactly one of {', '.join(PROVIDERS)}", document.evidence(*where)
        return
    name, settings = given[0], provider[given[0]]
    if name not in PROVIDERS:
        yield f"{document.path}: there is no encryption provider {name}", document.evidence(*where, name)
        return
    keys = settings.get("keys")
    if name in KEY_LENGTHS and not keys:
        yield f"{document.path}: provider {name} has no keys", document.evidence(*where, name)
    for index, key in enumerate(keys or () if name in KEY_LENGTHS else ()):
        fault = _key_fault(key, KEY_LENGTHS[name])
        if fault:
            # the evidence names the key by its position alone: its line holds the secret
            line = document.evidence(*where, name, "keys", index).line
            yield f"{document.path}: key {index + 1} of {name} {fault}", Evidence(document.path, line)


def _key_fault(key: Any, lengths: tuple[int, ...]) -> str:
    if not isinstance(key, dict) or not key.get("name"):
        return "has no name"
    secret = "".join(str(key.get("secret") or "").split("\n"))  # Go skips line ends in base64
    if not secret:
        return "has no secret"
    try:
        size = len(base64.b64decode(secret, validate=True))
    except (binascii.Error, ValueError):
        return "is not base64"
    wanted = " or ".join(map(str, lengths))
    return "" if size in lengths else f"has {size} bytes, and must have {wanted}"


def _kms(document: Document, component: Component, minor: int, where: Path, names: set[str]) -> Iterator[Refused]:
    """`names` collects the providers of the whole file."""
    name, version = (document.get(*where, part, default="") for part in ("name", "apiVersion"))
    endpoint = document.get(*where, "endpoint", default="")
    if not name:
        yield f"{document.path}: a KMS provider has no name", document.evidence(*where)
    if not endpoint.startswith("unix:"):
        title = f"{document.path}: the endpoint of KMS provider {name} must be unix:///PATH"
        yield title, document.evidence(*where, "endpoint")
    if version not in {"", "v1", "v2"}:
        title = f"{document.path}: KMS provider {name} has apiVersion {version}, and there are v1 and v2"
        yield title, document.evidence(*where, "apiVersion")
    if re.fullmatch(r"-.*|[+-]?0+(\.0*)?([a-z]+)?", document.get(*where, "timeout", default="3s")):
        yield (
            f"{document.path}: the timeout of KMS provider {name} must be above 0",
            document.evidence(*where, "timeout"),
        )
    if version == "v2" and minor >= RESOURCE_NAMES_SINCE:
        if document.get(*where, "cachesize") is not None:
            yield f"{document.path}: cachesize is of KMS v1 alone", document.evidence(*where, "cachesize")
        if ":" in name or name in names:
            title = f"{document.path}: the name of KMS provider {name} must be its own, and without a colon"
            yield title, document.evidence(*where, "name")
    elif version in {"", "v1"} and minor >= KMS_V1_GATED_SINCE and not _kms_v1(component):
        title = f"{document.path}: KMS v1 of provider {name} needs --feature-gates=KMSv1=true since 1.29"
        yield title, document.evidence(*where, "name")
    names.add(name)


def _kms_v1(component: Component) -> bool:
    pairs = [pair for flag in component.all("feature-gates") for pair in tables.split_gates(flag.value)]
    return any(name == "KMSv1" and value.lower() in {"true", "t", "1"} for _, name, value in pairs)


# ---- authorization, authentication, egress


def _authorization(document: Document) -> Iterator[Refused]:
    authorizers = _items(document, "authorizers")
    if not authorizers:
        yield f"{document.path} lists no authorizers", document.evidence("authorizers")
    types = [authorizer.get("type") for authorizer in authorizers]
    names = [authorizer.get("name") for authorizer in authorizers]
    for index, authorizer in enumerate(authorizers):
        where, type_, name = ("authorizers", index), types[index], names[index]
        if type_ not in AUTHORIZERS:
            title = f"{document.path}: authorizer type {type_!r} is none of {', '.join(AUTHORIZERS)}"
            yield title, document.evidence(*where, "type")
        elif type_ != "Webhook" and type_ in types[:index]:
            yield f"{document.path}: authorizer type {type_} is given twice", document.evidence(*where, "type")
        elif (type_ == "Webhook") is not (authorizer.get("webhook") is not None):
            title = f"{document.path}: an authorizer of type Webhook has the field webhook, and no other has"
            yield title, document.evidence(*where, "webhook")
        if not name or not SUBDOMAIN.fullmatch(name) or name in names[:index]:
            title = f"{document.path}: authorizers[{index}] needs a name of its own, in lower case"
            yield title, document.evidence(*where, "name")


def _authentication(document: Document, component: Component) -> Iterator[Refused]:
    anonymous = document.get("anonymous")
    if anonymous is not None and component.has("anonymous-auth"):
        title = f"{document.path} and --anonymous-auth both configure anonymous requests, which is refused"
        yield title, document.evidence("anonymous")
    if anonymous is not None and anonymous.get("conditions") and not anonymous.get("enabled"):
        title = f"{document.path}: anonymous.conditions need anonymous.enabled: true"
        yield title, document.evidence("anonymous", "conditions")
    urls = [document.get("jwt", index, "issuer", "url", default="") for index, _ in enumerate(_items(document, "jwt"))]
    for index, url in enumerate(urls):
        where = ("jwt", index)
        if not url.startswith("https://") or url in urls[:index]:
            title = f"{document.path}: jwt[{index}].issuer.url must be https:// and given once"
            yield title, document.evidence(*where, "issuer", "url")
        if not document.get(*where, "issuer", "audiences"):
            yield f"{document.path}: jwt[{index}].issuer has no audiences", document.evidence(*where, "issuer")
        username = document.get(*where, "claimMappings", "username", default={})
        at = document.evidence(*where, "claimMappings", "username")
        if not username.get("claim") and not username.get("expression"):
            yield f"{document.path}: jwt[{index}].claimMappings.username needs a claim or an expression", at
        elif username.get("claim") and username.get("prefix") is None:
            yield f'{document.path}: jwt[{index}].claimMappings.username needs a prefix ("" for none)', at


def _egress(document: Document) -> Iterator[Refused]:
    for index, _ in enumerate(_items(document, "egressSelections")):
        where = ("egressSelections", index)
        for path, known in ((("name",), SELECTIONS), (("connection", "proxyProtocol"), PROTOCOLS)):
            value = document.get(*where, *path)
            if value is not None and value not in known:
                title = (
                    f"{document.path}: {dotted((*where, *path))} is {value!r}, and must be one of {', '.join(known)}"
                )
                yield title, document.evidence(*where, *path)
