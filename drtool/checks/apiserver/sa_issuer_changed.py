"""The issuer of service account tokens was replaced, and tokens of the old one are refused.

Every Pod that runs holds a token of the issuer of its day. When --service-account-issuer is replaced they all become
Unauthorized at once: network plugin, kube-proxy, DNS. Since 1.22 the flag may be given twice: the first one signs, the
others are accepted. From 1.20 on the API server does not start without an issuer.

Fix: give the flag twice, the new issuer first and the old one after it; take the old one out when all Pods are newer.
"""

import re
from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node
from manifests.peers import same_cluster
from manifests.pki.service_accounts import configured_issuers, issuers
from manifests.pod import Flag

SEVERITY = Severity.ERROR
REFUSED = re.compile(r"invalid bearer token|unexpected issuer|issued by a different|invalid issuer")


def find(case: Case) -> Iterator[Finding]:
    node = case.node
    flags = issuers(node)
    if not flags:
        raise NotApplicable("the API server has no issuer: it does not start, and flag-unknown-or-removed says so")
    yield from _among_nodes(case, flags[0])
    known, evidence = configured_issuers(node)
    if not any(flag.value in known for flag in flags):
        refused = _refused(node)
        yield Finding(
            f"Tokens are issued and accepted for {flags[0].value} only, the cluster's issuer was {known[0]}",
            (flags[0].evidence, evidence, *refused[-1:]),
        )


def _among_nodes(case: Case, ours: Flag) -> Iterator[Finding]:
    for other in same_cluster(case.node, case.others):
        theirs = issuers(other)
        if theirs and ours.value not in {flag.value for flag in theirs}:
            yield Finding(
                f"Tokens are issued here for {ours.value}, which {other.name} does not accept",
                (ours.evidence, *(flag.evidence for flag in theirs)),
            )


def _refused(node: Node) -> tuple[Evidence, ...]:
    try:
        lines = node.log("kube-apiserver")
    except EvidenceMissing:
        return ()
    return tuple(line.evidence for line in lines if REFUSED.search(line.text))
