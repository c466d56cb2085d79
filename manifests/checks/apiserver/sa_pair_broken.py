"""Service account tokens are signed with a key that the API server does not verify with.

--service-account-signing-key-file (and the controller-manager's --service-account-private-key-file) must fit one of the
--service-account-key-file. Otherwise every Pod's token is refused: network plugin, DNS and controllers stop, people do
not notice. Several verification keys are the way to rotate and are fine. All control planes must hold the same pair.

Fix: copy sa.key and sa.pub from a control plane whose tokens work, restart API server and controller-manager.
"""

from collections.abc import Iterator

from drtool.core.report import Finding, Severity
from manifests.node import Node
from manifests.service_accounts import signers, verifying_keys

SEVERITY = Severity.ERROR


def find(node: Node) -> Iterator[Finding]:
    node.apiserver.flag("service-account-key-file")
    known = verifying_keys(node)
    evidence = tuple(flag.evidence for flag in node.apiserver.all("service-account-key-file"))
    for signer in signers(node):
        if signer.key not in known:
            yield Finding(
                f"{signer.path}, with which the {signer.program} signs tokens, fits none of --service-account-key-file",
                (signer.evidence, *evidence),
                layer=signer.layer,
            )
