"""Cipher suites and TLS versions must be names that the program knows, and must leave HTTP/2 possible.

An unknown name stops the program. A list for TLS 1.2 without TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or its ECDSA sister
does too: the API server and etcd end with `missing an HTTP/2-required AES_128_GCM_SHA256 cipher` (etcd 3.5 only says
`use of closed network connection`). etcd refuses any list once TLS 1.3 is the minimum, and an API server older than
1.28 cannot speak to an etcd that takes TLS 1.3 alone. Suites that are known but insecure are a warning.

Fix: put TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 (or ECDSA, as the key is) into the list, or take the option out.
"""

from collections.abc import Iterator, Sequence

from drtool.core.report import Evidence, Finding, Severity
from manifests.installed import layer_of
from manifests.node import Node
from manifests.pod import Component
from manifests.releases import tls
from manifests.releases.spelling import nearest

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "kubelet-not-running")
TLS13_CLIENT_SINCE = (1, 28)


def find(node: Node) -> Iterator[Finding]:
    for program, component in node.components.items():
        if program == "etcd":
            yield from _etcd(node, component)
            continue
        suites, minimum = component.all("tls-cipher-suites"), component.all("tls-min-version")
        names = component.names("tls-cipher-suites")
        at = suites[-1].evidence if suites else component.image_evidence
        lowest = minimum[-1].value if minimum else ""
        yield from _versions(program, lowest, minimum[-1].evidence if minimum else at, tls.KUBERNETES_VERSIONS)
        http2 = component.value("disable-http2-serving", "false") != "true" and program == "kube-apiserver"
        yield from _suites(program, names, at, http2 and lowest != "VersionTLS13")
    yield from _kubelet(node)


def _kubelet(node: Node) -> Iterator[Finding]:
    listed, at = node.kubelet.setting("tls-cipher-suites", "tlsCipherSuites", default=[])
    names = listed.split(",") if isinstance(listed, str) else listed if isinstance(listed, list) else []
    minimum, where = node.kubelet.setting("tls-min-version", "tlsMinVersion", default="")
    yield from _versions("kubelet", str(minimum), where, tls.KUBERNETES_VERSIONS)
    yield from _suites("kubelet", [str(name).strip() for name in names if str(name).strip()], at, http2=False)


def _etcd(node: Node, etcd: Component) -> Iterator[Finding]:
    suites, minimum = etcd.all("cipher-suites"), etcd.all("tls-min-version")
    names = etcd.names("cipher-suites")
    for name in ("tls-min-version", "tls-max-version"):
        for flag in etcd.all(name):
            yield from _versions("etcd", flag.value, flag.evidence, tls.ETCD_VERSIONS)
    only13 = bool(minimum) and minimum[-1].value == "TLS1.3"
    at = suites[-1].evidence if suites else etcd.image_evidence
    yield from _suites("etcd", names, at, http2=not only13)
    if only13 and names:
        title = "etcd takes no --cipher-suites when TLS 1.3 is the minimum"
        yield Finding(title, (at, minimum[-1].evidence), layer=layer_of("etcd"))
    apiserver = node.components.get("kube-apiserver")
    if only13 and apiserver and apiserver.version and apiserver.version < TLS13_CLIENT_SINCE:
        version = ".".join(map(str, apiserver.version))
        yield Finding(
            f"etcd takes TLS 1.3 alone, and kube-apiserver {version} offers it at most TLS 1.2",
            (minimum[-1].evidence, apiserver.image_evidence),
            layer=layer_of("etcd"),
        )


def _versions(program: str, value: str, at: Evidence, known: Sequence[str]) -> Iterator[Finding]:
    if value and value not in known:
        yield Finding(
            f"{program} knows no TLS version {value!r}; it takes {', '.join(known)}", (at,), layer=layer_of(program)
        )


def _suites(program: str, names: Sequence[str], at: Evidence, http2: bool) -> Iterator[Finding]:
    layer = layer_of(program)
    for name in names:
        if name not in tls.SUITES:
            near = nearest(name, tls.SUITES)
            hint = f"; {near} is the nearest name" if near else ""
            yield Finding(f"{program} knows no cipher suite {name}{hint}", (at,), layer=layer)
    if http2 and names and not tls.HTTP2_SUITES & set(names) and set(names) <= tls.SUITES:
        title = f"The cipher suites of {program} lack TLS_ECDHE_*_WITH_AES_128_GCM_SHA256, which HTTP/2 requires"
        yield Finding(title, (at,), layer=layer)
    insecure = sorted(tls.INSECURE_SUITES & set(names))
    if insecure:
        yield Finding(f"Insecure cipher suites of {program}: {', '.join(insecure)}", (at,), Severity.WARNING, layer)
