"""The capture of a node: its files, a bundle's, or its files and what its programs say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from drtool.commands.scratch_marker import rehearsed
from drtool.host.patience import Patience
from drtool.host.root import Root
from manifests.capture import Capture, capture
from manifests.node import Node
from manifests.saved import is_bundle, restored


def gather(root: Root, probe: bool = True) -> Capture:
    """Reads the node's files and, where it is this machine and `probe` is not off, asks its programs.

    Of a rehearsal's scratch node the etcd is asked, which is all that runs of it.
    """
    if root.live and root.patience is None:
        root = replace(root, patience=Patience())
    files = (restored(root) if is_bundle(root) else None) or capture(root)
    marker = rehearsed(root)
    if not probe or not (root.live or marker):
        return files
    from drtool.commands.asking import ask, ask_rehearsed  # sockets and TLS: a tree is judged without them

    node = Node(files, datetime.now(UTC))
    return files.told(ask_rehearsed(node, root, marker.ports) if marker else ask(node, root))
