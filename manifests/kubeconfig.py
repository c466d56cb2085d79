"""Kubeconfigs: where they point, whom they trust, with what they prove themselves."""

from __future__ import annotations

import base64
import binascii
import posixpath
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from drtool.core.report import Evidence
from manifests.document import Document
from manifests.pki.certificates import Pem, read_pem


@dataclass(frozen=True)
class Kubeconfig:
    """The current context of one file.

    `ca`, `client` and `key` are embedded data or what the named file holds; `ca_file`, `client_file` and `key_file` are
    the paths where files are named (a relative one starts at the kubeconfig's directory), "" where none is. `problem`
    says what makes the file unusable.
    """

    path: str
    server: str
    server_evidence: Evidence
    ca: Pem | None
    ca_file: str
    ca_evidence: Evidence
    client: Pem | None
    client_file: str
    client_evidence: Evidence
    key: Pem | None
    key_file: str
    user: str
    has_token: bool
    problem: str = ""

    @property
    def host(self) -> str:
        return split_url(self.server)[0]

    @property
    def port(self) -> int | None:
        return split_url(self.server)[1]


def split_url(url: str) -> tuple[str, int | None]:
    """Host (without brackets) and port of a URL; the port that https implies where none is given."""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        port = parts.port
    except ValueError:
        return "", None
    if port is None and parts.scheme in {"https", "http"}:
        port = 443 if parts.scheme == "https" else 80
    return parts.hostname or "", port


def read_kubeconfig(document: Document) -> Kubeconfig:
    """The context that `current-context` names; embedded data only, files are filled in by the Node."""
    current = document.get("current-context", default="")
    context, _ = _named(document, "contexts", current, "context")
    cluster, cluster_at = _named(document, "clusters", context.get("cluster", ""), "cluster")
    user, user_at = _named(document, "users", context.get("user", ""), "user")
    problem = ""
    if document.get("kind", default="Config") != "Config":
        problem = f"kind is {document.get('kind')}, not Config"
    elif not context:
        problem = f'current-context "{current}" is not among its contexts'
    elif not cluster.get("server"):
        problem = f'no cluster "{context.get("cluster", "")}" with a server'
    elif _given(user, "client-certificate") and not _given(user, "client-key"):
        problem = f'user "{context.get("user", "")}" has a client certificate and no key'
    ca, _ = _embedded(document, cluster, cluster_at, "certificate-authority-data")
    client, bad_client = _embedded(document, user, user_at, "client-certificate-data")
    key, bad_key = _embedded(document, user, user_at, "client-key-data")
    return Kubeconfig(
        path=document.path,
        server=str(cluster.get("server") or ""),
        server_evidence=document.evidence(*cluster_at, "server"),
        ca=ca,
        ca_file=_file(document, cluster, "certificate-authority"),
        ca_evidence=document.evidence(*cluster_at, _key(cluster, "certificate-authority")),
        client=client,
        client_file=_file(document, user, "client-certificate"),
        client_evidence=document.evidence(*user_at, _key(user, "client-certificate")),
        key=key,
        key_file=_file(document, user, "client-key"),
        user=str(context.get("user") or ""),
        has_token=any(name in user for name in ("token", "tokenFile", "exec", "auth-provider")),
        problem=problem or bad_client or bad_key,
    )


def _given(values: dict[str, Any], name: str) -> bool:
    return bool(values.get(name) or values.get(f"{name}-data"))


def _file(document: Document, values: dict[str, Any], name: str) -> str:
    path = str(values.get(name) or "")
    return posixpath.normpath(posixpath.join(posixpath.dirname(document.path), path)) if path else ""


def _key(values: dict[str, Any], name: str) -> str:
    return f"{name}-data" if f"{name}-data" in values else name


def _named(document: Document, section: str, name: object, key: str) -> tuple[dict[str, Any], tuple[str | int, ...]]:
    items = document.get(section, default=[])
    for index, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, dict) and item.get("name") == name and isinstance(item.get(key), dict):
            return item[key], (section, index, key)
    return {}, (section,)


def _embedded(
    document: Document, values: dict[str, Any], at: tuple[str | int, ...], key: str
) -> tuple[Pem | None, str]:
    text = values.get(key)
    if not text:
        return None, ""
    evidence = document.evidence(*at, key)
    try:
        data = base64.b64decode(str(text), validate=True)
    except (ValueError, binascii.Error):
        return None, f"{key} is not base64"
    pem = read_pem(document.path, data, evidence.line)
    return pem, f"{key}: {pem.problem}" if pem.problem else ""
