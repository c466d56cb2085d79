"""Aggregated APIs must be told the front-proxy CA that the API server uses.

The API server publishes it in the ConfigMap kube-system/extension-apiserver-authentication, when it starts. Where that
holds another CA than --requestheader-client-ca-file, metrics-server and other aggregated APIs refuse the API server's
requests: the file was changed and the API server not restarted, or the db is of another cluster or time.

Fix: restart the API server, then the aggregated API servers; where the ConfigMap stays, delete it first.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Finding, Severity
from manifests.node import Node
from snapshots.registry.cluster import evidence

SEVERITY = Severity.ERROR
CONFIG_MAP, KEY, FLAG = (
    "extension-apiserver-authentication",
    "requestheader-client-ca-file",
    "requestheader-client-ca-file",
)
END = "-----END CERTIFICATE-----"


def find(case: Case) -> Iterator[Finding]:
    apiserver = case.node.apiserver
    if not apiserver.has(FLAG):
        raise NotApplicable(f"the API server has no --{FLAG}")
    flag = apiserver.flag(FLAG)
    own = _certificates(case.node.text(_path(case.node, flag.value)))
    found = case.cluster.config_map(CONFIG_MAP)
    published = _certificates(str(found.at("data", KEY) or ""))
    if not own or not published:
        raise EvidenceMissing(f"no certificate in {flag.value}" if not own else f"ConfigMap {CONFIG_MAP} has no {KEY}")
    if not own <= published:
        yield Finding(
            f"The ConfigMap {CONFIG_MAP} publishes another front-proxy CA than {flag.value} holds",
            (evidence(found), flag.evidence),
        )


def _path(node: Node, path: str) -> str:
    return node.apiserver.container.host_path(path) or path


def _certificates(text: str) -> set[str]:
    """The certificates of a PEM bundle, white space aside."""
    return {"".join(part.partition("-----BEGIN CERTIFICATE-----")[2].split()) for part in text.split(END)} - {""}
