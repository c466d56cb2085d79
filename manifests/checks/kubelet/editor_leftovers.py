"""Editors and package managers leave files beside what they change.

vim's 4913 and `~` copies, *.rpmsave, *.dpkg-old and the like in the static Pod directory are read by the kubelet as any
other file; in /etc/kubernetes and the kubelet's drop-ins they are only confusing. Names that start with a dot (vim's
.swp) are ignored by the kubelet.

Fix: remove them; edit manifests elsewhere and move them into place.
"""

import re
from collections.abc import Iterator

from drtool.core.report import Evidence, Finding, Severity
from manifests.node import Node

SEVERITY = Severity.INFO
LEFTOVER = re.compile(
    r"^4913$|~$|\.(swp|swo|swx|orig|rej|rpmsave|rpmnew|rpmorig|ucf-\w+|dpkg-(old|new|dist|tmp|bak))$|^#.*#$"
)
PLACES = ("/etc/kubernetes", "/etc/kubernetes/pki", "/etc/systemd/system/kubelet.service.d", "/var/lib/kubelet")


def find(node: Node) -> Iterator[Finding]:
    for directory in dict.fromkeys((node.manifests_directory, *PLACES)):
        for name in node.capture.listings.get(directory, ()):
            if LEFTOVER.search(name) and not name.startswith("."):
                yield Finding(
                    f"{name} in {directory} is left over from an editor or a package", (_at(directory, name),)
                )


def _at(directory: str, name: str) -> Evidence:
    return Evidence(f"{directory}/{name}")
