"""Service account tokens are signed with a key that the API server does not verify with.

--service-account-signing-key-file (and the controller-manager's --service-account-private-key-file) must fit one of the
--service-account-key-file. Otherwise every Pod's token is refused: network plugin, DNS and controllers stop, people do
not notice. Several verification keys are the way to rotate and are fine. All control planes must hold the same pair.

Fix: copy sa.key and sa.pub from a control plane whose tokens work, restart API server and controller-manager.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node
from manifests.peers import same_cluster
from manifests.pki.service_accounts import signers, verifying_keys

SEVERITY = Severity.ERROR


def find(case: Case) -> Iterator[Finding]:
    node = case.node
    node.apiserver.flag("service-account-key-file")
    yield from _against(node, node)
    for other in same_cluster(node, case.others):
        try:
            yield from _against(node, other)
        except (EvidenceMissing, NotApplicable):
            continue


def _against(node: Node, verifier: Node) -> Iterator[Finding]:
    """Tokens that are signed here, held against the keys that an API server verifies with."""
    known = verifying_keys(verifier)
    for signer in signers(node):
        if signer.key in known:
            continue
        if verifier is node:
            title = (
                f"{signer.path}, with which the {signer.program} signs tokens, fits none of --service-account-key-file"
            )
        else:
            title = f"{signer.path}, with which the {signer.program} signs tokens, fits none that {verifier.name} knows"
        yield Finding(title, (signer.evidence, *_flags(verifier)), layer=signer.layer)


def _flags(verifier: Node) -> tuple[Evidence, ...]:
    return tuple(flag.evidence for flag in verifier.apiserver.all("service-account-key-file"))
