"""Load balancers on the node itself, as their own files describe them: haproxy, keepalived, nginx."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from drtool.core.report import Evidence
from drtool.host.root import Entry
from manifests.kubeconfig import split_url
from manifests.node import Node

KEEPALIVED = "/etc/keepalived/keepalived.conf"
NGINX = "/etc/nginx/nginx.conf"


@dataclass(frozen=True, slots=True)
class Server:
    """One backend of a balancer; `section` is the backend or upstream that it stands in."""

    section: str
    host: str
    port: int | None
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Bind:
    """Where haproxy or nginx listens ("" for every address); `tls` where it shows a certificate of its own."""

    host: str
    port: int | None
    tls: bool
    evidence: Evidence


def ends_tls(node: Node) -> bool:
    return any(bind.tls for bind in binds(node))


def _haproxy_files(node: Node) -> Iterator[Entry]:
    yield from node.capture.matching(r"/etc/haproxy/(haproxy\.cfg|conf\.d/[^/]+\.cfg)")


def binds(node: Node) -> tuple[Bind, ...]:
    haproxy = [found for file in _haproxy_files(node) for found in node.find(file.path, r"^\s*bind\s+(\S+)(.*)$")]
    nginx = node.find(NGINX, r"^\s*listen\s+([^\s;]+)([^;]*);")
    return tuple(
        Bind(*_listening(place), bool(re.search(r"\bssl\b|\bcrt\b", match[2])), evidence)
        for match, evidence in (*haproxy, *nginx)
        for place in match[1].split(",")
    )


def _listening(place: str) -> tuple[str, int | None]:
    """`*:6443`, `:6443`, `192.0.2.1:6443`, `[::]:6443`, haproxy's `:::6443` and `ipv4@:6443`, nginx's bare `6443`."""
    host, _, port = place.rpartition("@")[2].rpartition(":")
    return host.strip("[]").replace("*", ""), int(port) if port.isdecimal() else None


def servers(node: Node) -> tuple[Server, ...]:
    """Backends of haproxy and of nginx's stream upstreams, in order."""
    return (*_haproxy_servers(node), *_nginx_servers(node))


def _haproxy_servers(node: Node) -> Iterator[Server]:
    for file in _haproxy_files(node):
        section = ""
        for match, evidence in node.find(file.path, r"^\s*(backend|listen|frontend|defaults|global|server)\b\s*(.*)$"):
            words = match[2].split()
            if match[1] != "server":
                section = words[0] if words else match[1]
            elif len(words) > 1:
                host, port = split_url(words[1])
                yield Server(section, host, port, evidence)


def _nginx_servers(node: Node) -> Iterator[Server]:
    section = ""
    for match, evidence in node.find(NGINX, r"^\s*(upstream|server)\s+([^\s;{]+)\s*[^{]*([;{])"):
        if match[1] == "upstream":
            section = match[2]
        elif match[3] == ";" and section:
            host, port = split_url(match[2])
            yield Server(section, host, port, evidence)
